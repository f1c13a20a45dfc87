#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "logic/reader.h"

namespace tl::logic {
namespace {

using Kind = ColumnType::Kind;

class Csv : public testing::Test {
 protected:
  std::size_t load(const std::string& text, bool header = false, char separator = ',') {
    std::ofstream(path_, std::ios::binary) << text;
    return db_.load_csv(*db_.find("r"), path_, {.header = header, .separator = separator});
  }
  std::string failure(const std::string& text) {
    try {
      load(text);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind, ErrorKind::BadFile);
      const std::string message = e.what();
      return message.substr(message.rfind(path_) + path_.size());
    }
    return "no error";
  }
  void TearDown() override { std::remove(path_.c_str()); }

  Database db_;
  std::string path_ = testing::TempDir() + "facts_of_csv_test.csv";
};

TEST_F(Csv, KindsFollowTheText) {
  db_.declare("r", std::vector<ColumnType>(2));
  EXPECT_EQ(load("ann,1\nbob , 2.5\r\n\"c,\"\"d\"\"\",true\n\n\"7\",x\nann,1\n"), 4U);
  EXPECT_EQ(tuples(db_, "r"), (Texts{"r(ann, 1)", "r(bob, 2.5)", "r(c,\"d\", true)", "r(7, x)"}));
}

TEST_F(Csv, KindsFollowTheColumns) {
  db_.declare("r", {{Kind::Entity, "Person"}, {Kind::Float, ""}});
  EXPECT_EQ(load("name;size\n12;3\n13;3.5", true, ';'), 2U);
  EXPECT_EQ(tuples(db_, "r"), (Texts{"r(12, 3.0)", "r(13, 3.5)"}));
}

TEST_F(Csv, WhatIsWrongIsSaidWithTheLine) {
  db_.declare("r", {{Kind::Entity, ""}, {Kind::Int, ""}});
  EXPECT_EQ(failure("a,1\nb\n"), ":2: relation 'r' has 2 arguments, the line 1");
  EXPECT_EQ(failure("a,1\nb,\n"), ":2: argument 2 of r is int, not ''");
  EXPECT_EQ(failure("\"a\nb\",1\nc,x"), ":3: argument 2 of r is int, not 'x'");
  EXPECT_EQ(failure("\"a,1"), ":1: a quote is not closed");
  EXPECT_EQ(failure("\"a\"b,1"), ":1: text after a closing quote");
  EXPECT_THROW(db_.load_csv(0, path_ + ".none"), Error);
}

TEST_F(Csv, ABadLineLeavesNothingOfItsFile) {
  const RelationId r = db_.declare("r", {{Kind::Entity, ""}, {Kind::Int, ""}});
  EXPECT_EQ(load("a,1\n"), 1U);
  EXPECT_EQ(failure("b,2\nc,3\nd,four\n"), ":3: argument 2 of r is int, not 'four'");
  EXPECT_EQ(tuples(db_, "r"), (Texts{"r(a, 1)"}));

  std::ofstream(path_) << "b,2\nzoe,3\n";
  CsvOptions options;
  int added = 0;
  options.on_fact = [&](std::span<const Id>) { ++added; };
  options.refuse = [&](std::span<const Id> tuple) {
    return to_text(db_.symbols()[tuple[0]]) == "zoe" ? std::string("no zoe here") : "";
  };
  try {
    db_.load_csv(r, path_, options);
    FAIL() << "zoe was let in";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(":2: no zoe here"), std::string::npos) << e.what();
  }
  EXPECT_EQ(added, 0);
  EXPECT_EQ(tuples(db_, "r"), (Texts{"r(a, 1)"}));
}

}  // namespace
}  // namespace tl::logic
