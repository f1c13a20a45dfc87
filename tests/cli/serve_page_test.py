#!/usr/bin/env python3
"""The page of `tl serve` in headless Chromium. Usage: serve_page_test.py PATH_TO_TL [--pictures FOLDER] [--model M.gguf]

Needs Debian's chromium, chromium-driver and python3-selenium; without them it says so and exits with 77, which ctest
counts as skipped. With --pictures it also takes pictures for a phone and a desk, light and dark.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time

from serving import Server, make_model

try:
    from selenium import webdriver
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    webdriver = None
    # Debian's package belongs to Debian's Python, which need not be the first on PATH.
    if sys.executable != "/usr/bin/python3" and os.access("/usr/bin/python3", os.X_OK):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])

SKIPPED = 77


def browser(width=1200, height=800):
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     f"--window-size={width},{height}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=webdriver.ChromeService(shutil.which("chromedriver"))
                            if hasattr(webdriver, "ChromeService") else
                            webdriver.chrome.service.Service(shutil.which("chromedriver")), options=options)


class Page:
    def __init__(self, driver, url):
        self.driver, self.url = driver, url
        driver.get(url)

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def texts(self, selector):
        """What is written in them, read in one step: the page draws its turns anew while it is looked at."""
        return self.driver.execute_script("return [...document.querySelectorAll(arguments[0])].map(node => node.innerText)", selector)

    def until(self, claim, what, seconds=30):
        WebDriverWait(self.driver, seconds, poll_frequency=0.02).until(lambda _: claim(), what)

    def type(self, text):
        self.one("#text").send_keys(text)

    def answer(self):
        return (self.texts(".turn.assistant .words") or [""])[-1]

    def set(self, name, value):
        self.driver.execute_script("const input = document.getElementById('s-' + arguments[0]);"
                                   "input.value = arguments[1]; input.dispatchEvent(new Event('input'));", name, value)


def check(claim, what):
    if not claim:
        raise AssertionError(what)


def test_chat(page, server):
    page.until(lambda: "tiny" in page.one("#model").text, "the model's name is shown")
    check(page.driver.switch_to.active_element.get_attribute("id") == "text", "the message box has the focus")
    page.type("hello")
    page.type(Keys.SHIFT + Keys.ENTER)
    page.type("<img src=x onerror=alert(1)> there" + Keys.ENTER)
    page.until(lambda: len(page.answer()) > 0, "text comes")
    check(page.one("#stop").is_displayed() and not page.one("#send").is_displayed(), "it can be stopped while it streams")
    before = page.answer()
    page.until(lambda: len(page.answer()) > len(before), "more text comes: it streams")
    page.until(lambda: "tokens/s" in page.one("#speed").text, "the speed is shown")
    page.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    page.until(lambda: page.one("#send").is_displayed(), "Escape stops it")
    server.wait_until(lambda: server.metrics()["tl_requests_running"] == 0)
    stopped = page.answer()
    time.sleep(0.3)
    check(page.answer() == stopped, "nothing comes after the stop")
    check(page.texts(".turn.user .words")[0].startswith("hello\n<img"), "Shift+Enter is a new line, markup is text")
    check(not page.all("#turns img"), "what is written is not read as HTML")


def test_stop_button_and_whole_answer(page):
    page.set("max_tokens", "400")
    page.type("go on" + Keys.ENTER)
    page.until(lambda: len(page.all(".turn.assistant")) == 2 and page.answer(), "the second answer begins")
    page.one("#stop").click()
    page.until(lambda: page.one("#send").is_displayed(), "the button stops it")
    page.until(lambda: "stopped" in "".join(page.texts(".turn.assistant:last-child .note")), "the answer is marked")
    page.set("max_tokens", "8")
    page.all(".turn.assistant")[-1].find_element(By.CSS_SELECTOR, "[data-act=again]").click()
    page.until(lambda: "tokens" in "".join(page.texts(".turn.assistant:last-child .note")), "a whole answer")
    check("reused" in page.texts(".turn .note")[-1], "what was computed before is shared")


def test_fork_and_edit(page):
    turns = len(page.all(".turn"))
    check(turns == 4 and len(page.all("#chats li")) == 1, "two questions, two answers, one chat")
    page.all(".turn.assistant")[0].find_element(By.CSS_SELECTOR, "[data-act=fork]").click()
    page.until(lambda: len(page.all("#chats li")) == 2, "there is a second chat")
    check(len(page.all(".turn")) == 2 and "(fork)" in page.one("#title").text, "it has what came before the fork")
    page.type("another way" + Keys.ENTER)
    page.until(lambda: len(page.all(".turn .note")) >= 2 and page.one("#send").is_displayed(), "it goes on by itself")
    check(len(page.all(".turn")) == 4, "the fork has its own second turn")
    page.all("#chats .open")[1].click()
    page.until(lambda: len(page.all(".turn.user")) == 2 and "go on" in page.texts(".turn.user .words")[1],
               "the first chat is as it was")
    page.all(".turn.user")[1].find_element(By.CSS_SELECTOR, "[data-act=edit]").click()
    check(page.one("#text").get_attribute("value") == "go on" and page.one("#editing").is_displayed(), "it can be changed")
    page.type(" differently" + Keys.ENTER)
    page.until(lambda: page.texts(".turn.user .words")[-1:] == ["go on differently"] and page.one("#send").is_displayed(),
               "what was changed is sent")
    check(len(page.all(".turn")) == 4, "and takes the place of what was")
    page.driver.refresh()
    page.until(lambda: len(page.all("#chats li")) == 2 and len(page.all(".turn")) == 4, "chats are kept")
    page.one("#new").click()
    check(not page.all(".turn") and page.one(".empty").is_displayed(), "a new chat is empty")


def test_memory(page):
    page.one(".show[data-part=memory]").click()
    page.until(lambda: "iB" in page.one("#m-live").text and page.all("#labels tr"), "the memory panel is filled")
    check("kv cache" in page.one("#labels").text, "labels are listed")
    points = page.one("#graph .live").get_attribute("points")
    page.until(lambda: page.one("#graph .live").get_attribute("points") != points, "it redraws")
    page.driver.find_element(By.TAG_NAME, "body").send_keys(Keys.ESCAPE)
    page.until(lambda: not page.one("#panel").is_displayed(), "Escape closes the panel")


def test_phone(page):
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                {"width": 375, "height": 740, "deviceScaleFactor": 2, "mobile": True})
    page.driver.refresh()
    page.until(lambda: page.one("#menu").is_displayed() and not page.one("#side").is_displayed(), "chats are behind a button")
    wide = page.driver.execute_script("return document.documentElement.scrollWidth")
    check(wide <= 375, f"nothing is wider than the phone, but {wide} pixels are")
    page.one("#menu").click()
    page.until(lambda: page.one("#side").is_displayed(), "the button shows them")
    page.all("#chats .open")[0].click()
    page.until(lambda: not page.one("#side").is_displayed() and page.all(".turn"), "a chat is chosen")
    page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_names_for_screen_readers(page):
    nameless = page.driver.execute_script(
        "return [...document.querySelectorAll('button, input, textarea')].filter(node => !(node.ariaLabel || node.innerText?.trim() ||"
        " node.textContent?.trim() || node.labels?.length)).map(node => node.outerHTML)")
    check(not nameless, f"without a name: {nameless}")
    for selector in ("main", "nav[aria-label]", "aside[aria-label]", "[aria-live=polite]", "h1"):
        check(page.all(selector), f"there is a {selector}")


def test_key(driver, tl, model):
    with Server(tl, model, "--api-key", "secret") as server:
        page = Page(driver, f"http://127.0.0.1:{server.port}/")
        page.until(lambda: "API key" in page.one("#model").text, "it says that a key is needed")
        page.one("#key").send_keys("secret" + Keys.TAB)
        page.until(lambda: "tiny" in page.one("#model").text, "with the key it connects")
        server.key = "secret"


STORY = ("Of course. Here is **what I know**:\n\n1. A tensor is a grid of numbers.\n2. Its *shape* says how many.\n\n"
         "```\nlet x = tensor([[1, 2], [3, 4]])\nprint(x @ x)\n```\n\nThe product is `[[7, 10], [15, 22]]`. Copies share memory "
         "until one of them is written:\n\n- copying is free\n- writing is safe")


def pictures(driver, url, folder):
    os.makedirs(folder, exist_ok=True)
    driver.get(url)
    driver.execute_script(
        "const chats = [['What is a tensor?', arguments[0]], ['A story about a candle', 'Once upon a time.'], ['Seven times eight', '56']]"
        ".map(([question, answer], i) => ({id: 'p' + i, title: '', messages: [{role: 'user', content: question},"
        " {role: 'assistant', content: answer, note: '64 tokens, 41.2 per second'}]}));"
        "localStorage.setItem('tallow.chats', JSON.stringify(chats)); localStorage.setItem('tallow.current', '\"p0\"')", STORY)
    for name, width, height, mobile in (("phone", 390, 844, True), ("desk", 1280, 800, False)):
        for scheme in ("light", "dark"):
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                   {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile})
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                   {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
            for what, script in (("chat", ""), ("settings", "document.querySelector('.show[data-part=settings]').click()"),
                                 ("memory", "document.querySelector('.show[data-part=memory]').click()"),
                                 ("empty", "document.getElementById('new').click()"),
                                 ("side", "document.getElementById('menu').click()")):
                if (what == "side") != mobile and what == "side":
                    continue
                driver.get(url)
                driver.execute_script("localStorage.setItem('tallow.current', '\"p0\"'); localStorage.setItem('tallow.panel', '\"\"')")
                driver.refresh()
                time.sleep(0.5)
                driver.execute_script(script)
                time.sleep(4 if what == "memory" else 0.4)
                driver.save_screenshot(os.path.join(folder, f"{name}-{scheme}-{what}.png"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tl")
    parser.add_argument("--pictures")
    options = parser.parse_args()
    missing = [program for program in ("chromium", "chromedriver") if not shutil.which(program)]
    if webdriver is None or missing:
        print(f"skipped: there is no {' and no '.join(missing or ['selenium for python3'])}")
        return SKIPPED
    tl = os.path.abspath(options.tl)
    with tempfile.TemporaryDirectory() as folder:
        model = make_model(os.path.join(folder, "tiny.gguf"), "--context", "16384")
        with Server(tl, model, "--ignore-end", "--parallel", "4") as server:
            driver = browser()
            try:
                url = f"http://127.0.0.1:{server.port}/"
                page = Page(driver, url)
                test_chat(page, server)
                test_stop_button_and_whole_answer(page)
                test_fork_and_edit(page)
                test_memory(page)
                test_phone(page)
                test_names_for_screen_readers(page)
                bad = [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
                check(not bad, f"the console has {bad}")
                test_key(driver, tl, model)
                if options.pictures:
                    pictures(driver, url, options.pictures)
            finally:
                driver.quit()
    print("the page sends, streams, stops, forks, edits, keeps chats, shows memory and fits a phone")
    return 0


if __name__ == "__main__":
    sys.exit(main())
