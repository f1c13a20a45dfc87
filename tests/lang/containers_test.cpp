#include "lang/builtins/container.h"

#include "lang/builtins/kv_cache.h"
#include "library_context.h"

namespace tl::lang::test {

namespace {

Value change(Value& target, std::string_view name, std::vector<Value> args) {
  Value result;
  EXPECT_TRUE(is_mutating_name(name)) << name;
  EXPECT_TRUE(call_mutating(context(), target, name, args, result)) << name;
  return result;
}

Value twice() {
  return function([](Context&, Args& args) -> Value { return 2 * args.integer(0); });
}
Value is_even() {
  return function([](Context&, Args& args) -> Value { return args.integer(0) % 2 == 0; });
}
Value add() {
  return function([](Context&, Args& args) -> Value { return args.integer(0) + args.integer(1); });
}

}  // namespace

TEST(Containers, LengthsOfEveryKind) {
  EXPECT_EQ(shown("len", {list({1, 2, 3})}), "3");
  EXPECT_EQ(shown("len", {"grün"}), "4");
  EXPECT_EQ(shown("len", {map({{"a", 1}})}), "1");
  EXPECT_EQ(shown("len", {tensor({1, 2, 3, 4, 5, 6}, {3, 2})}), "3");
  EXPECT_EQ(shown("len", {make<TokensObject>(std::vector<std::int32_t>{7, 8})}), "2");
  EXPECT_EQ(shown("len", {run("range", {2, 9})}), "7");
  EXPECT_EQ(shown("len", {run("KVCache::new", {4})}), "4");
  EXPECT_EQ(shown("is_empty", {list({})}), "true");
  fails("len() expects a list", "len", {5});
  fails("len() expects a list", "is_empty", {5});
  fails("rank 0", "len", {tl::Tensor::from<float>({1}, {})});
}

TEST(Containers, GetCountsFromTheEndAndTakesADefault) {
  const Value xs = list({10, 20, 30});
  EXPECT_EQ(shown("get", {xs, 0}), "10");
  EXPECT_EQ(shown("get", {xs, -1}), "30");
  EXPECT_EQ(shown("get", {xs, 7, "none"}), "\"none\"");
  EXPECT_EQ(shown("get", {map({{"a", 1}}), "a"}), "1");
  EXPECT_EQ(shown("get", {map({{"a", 1}}), "b", 0}), "0");
  EXPECT_EQ(shown("get", {run("range", {5, 8}), 2}), "7");
  EXPECT_EQ(shown("get", {"añb", 1}), "\"ñ\"");
  EXPECT_EQ(text(run("get", {tensor({1, 2, 3}, {3}), 1})), "2");
  fails("Index 3 out of bounds for length 3", "get", {xs, 3});
  fails("Key \"b\" not found", "get", {map({{"a", 1}}), "b"});
}

TEST(Containers, MethodsChangeTheVariableAndNoOther) {
  Value xs = list({1, 2});
  const Value before = xs;
  EXPECT_EQ(quoted(change(xs, "append", {3})), "[1, 2, 3]");
  EXPECT_EQ(quoted(before), "[1, 2]");
  change(xs, "push", {4});
  change(xs, "insert", {0, 9});
  change(xs, "extend", {list({5, 6})});
  change(xs, "set", {1, 7});
  EXPECT_EQ(quoted(xs), "[9, 7, 2, 3, 4, 5, 6]");
  EXPECT_EQ(quoted(change(xs, "pop", {})), "6");
  EXPECT_EQ(quoted(change(xs, "remove", {0})), "9");
  EXPECT_EQ(quoted(xs), "[7, 2, 3, 4, 5]");
  change(xs, "insert", {5, 8});  // at the end
  EXPECT_EQ(quoted(xs), "[7, 2, 3, 4, 5, 8]");
  change(xs, "clear", {});
  EXPECT_EQ(quoted(xs), "[]");
  fails("pop() from an empty List", [&] { change(xs, "pop", {}); });
  fails("Index 4 out of bounds", [&] { change(xs, "set", {4, 1}); });
  fails("expects 1 argument", [&] { change(xs, "append", {}); });
}

TEST(Containers, AListThatNobodySharesIsChangedInPlace) {
  Value xs = list({1});
  const Object* object = xs.object();
  for (int i = 0; i < 100; ++i) change(xs, "append", {i});
  EXPECT_EQ(xs.object(), object);
}

TEST(Containers, MapsAreChangedInTheSameWay) {
  Value m = map({{"a", 1}});
  const Value before = m;
  change(m, "set", {"b", 2});
  EXPECT_EQ(quoted(change(m, "remove", {"a"})), "1");
  EXPECT_EQ(shown("keys", {m}), "[\"b\"]");
  EXPECT_EQ(shown("keys", {before}), "[\"a\"]");
  change(m, "clear", {});
  EXPECT_EQ(shown("len", {m}), "0");
  fails("Key \"x\" not found", [&] { change(m, "remove", {"x"}); });
  Value result;
  std::vector<Value> args{1};
  EXPECT_FALSE(call_mutating(context(), m, "append", args, result));
  Value number = 5;
  EXPECT_FALSE(call_mutating(context(), number, "append", args, result));
  EXPECT_FALSE(is_mutating_name("sorted"));
}

TEST(Containers, FunctionsGiveTheChangedThing) {
  const Value xs = list({1, 2});
  EXPECT_EQ(shown("append", {xs, 3}), "[1, 2, 3]");
  EXPECT_EQ(shown("push", {xs, 3}), "[1, 2, 3]");
  EXPECT_EQ(shown("insert", {xs, 1, 9}), "[1, 9, 2]");
  EXPECT_EQ(shown("extend", {xs, list({3})}), "[1, 2, 3]");
  EXPECT_EQ(shown("remove", {xs, 0}), "[2]");
  EXPECT_EQ(shown("pop", {xs}), "2");
  EXPECT_EQ(shown("clear", {xs}), "[]");
  EXPECT_EQ(shown("set", {xs, 0, 8}), "[8, 2]");
  EXPECT_EQ(quoted(xs), "[1, 2]");
  for (const char* name : {"append", "append_token", "push", "extend", "remove"}) {
    fails(std::string(name) + "() cannot change Integer", name, {5, 1});
  }
  for (const char* name : {"clear", "pop"}) fails("cannot change Integer", name, {5});
  for (const char* name : {"insert", "set"}) fails("cannot change Integer", name, {5, 0, 1});
}

TEST(Containers, TokenIdsAreAppendedToAsValues) {
  Value ids = run("int_to_tokenids", {5});
  const Value longer = run("append", {ids, 6.0});
  EXPECT_EQ(text(longer), "[5, 6]");
  EXPECT_EQ(text(ids), "[5]");
  EXPECT_EQ(text(run("append_token", {ids, 9})), "[5, 9]");
  EXPECT_EQ(text(run("append", {ids, tensor({7}, {1})})), "[5, 7]");
  Value result;
  std::vector<Value> args{1};
  EXPECT_FALSE(call_mutating(context(), ids, "append", args, result));  // so that it gives new ones
  EXPECT_EQ(quoted(change(ids, "pop", {})), "5");
  fails("expects token ids", "append", {ids, "x"});
  fails("expects token ids", "append", {ids, -1});
}

TEST(Containers, VectorsAreSharedAndTyped) {
  const Value v = run("IntVec::new", {});
  const Value same = v;
  run("push", {v, 1});
  run("push", {same, 2});
  EXPECT_EQ(text(v), "Vec[1, 2]");
  run("set", {v, 0, 5});
  EXPECT_EQ(shown("get", {same, 0}), "5");
  EXPECT_EQ(shown("pop", {v}), "2");
  EXPECT_EQ(shown("len", {same}), "1");
  fails("IntVec.push() expects Integer, got Float", "push", {v, 1.5});
  fails("out of bounds for length 1", "set", {v, 3, 1});
  run("clear", {v});
  EXPECT_EQ(shown("is_empty", {same}), "true");
  fails("pop() from an empty IntVec", "pop", {v});

  const Value floats = run("FloatVec::new", {});
  run("push", {floats, 2});  // an integer is a float here
  EXPECT_EQ(text(run("get", {floats, 0})), "2");
  const Value texts = run("StringVec::new", {});
  run("extend", {texts, list({"a", "b"})});
  EXPECT_EQ(text(texts), "Vec[\"a\", \"b\"]");
  fails("StringVec.extend() expects String", "extend", {texts, list({1})});
  const Value bools = run("BoolVec::new", {});
  run("push", {bools, true});
  EXPECT_EQ(text(bools), "Vec[true]");
}

TEST(Containers, FindsElements) {
  EXPECT_EQ(shown("contains", {list({1, 2}), 2}), "true");
  EXPECT_EQ(shown("contains", {list({1, 2}), 2.0}), "true");
  EXPECT_EQ(shown("contains", {"hello", "ell"}), "true");
  EXPECT_EQ(shown("contains", {map({{"a", 1}}), "b"}), "false");
  EXPECT_EQ(shown("index_of", {list({"a", "b"}), "b"}), "1");
  EXPECT_EQ(shown("index_of", {list({"a", "b"}), "c"}), "-1");
  EXPECT_EQ(shown("index_of", {"añb", "b"}), "2");
  fails("contains() expects", "contains", {"text", 5});
  fails("cannot be iterated", "index_of", {5, 5});
}

TEST(Containers, Ranges) {
  EXPECT_EQ(shown("range", {3}), "[0, 1, 2]");
  EXPECT_EQ(shown("range_i", {2, 5}), "[2, 3, 4]");
  EXPECT_EQ(shown("range_i", {5, 2}), "[]");
  EXPECT_EQ(shown("range", {0, 10, 4}), "[0, 4, 8]");
  EXPECT_EQ(shown("range", {3, 0, -1}), "[3, 2, 1]");
  fails("step of 0", "range", {0, 10, 0});
  fails("elements", "range", {0, std::int64_t{1} << 60, 2});
  fails("too long", "range", {INT64_MIN, INT64_MAX});
  fails("too long to be a list", "sorted", {run("range", {std::int64_t{1} << 60})});
  fails("range() expects an Integer", "range", {"x"});
  fails("range_i() expects an Integer", "range_i", {"x"});
}

TEST(Containers, MapsTellTheirEntries) {
  const Value m = map({{"b", 1}, {"a", 2}});
  EXPECT_EQ(shown("keys", {m}), "[\"b\", \"a\"]");
  EXPECT_EQ(shown("values", {m}), "[1, 2]");
  EXPECT_EQ(shown("items", {m}), "[(\"b\", 1), (\"a\", 2)]");
  EXPECT_EQ(shown("has", {m, "a"}), "true");
  for (const char* name : {"keys", "values", "items"}) fails("expects a map", name, {list({})});
  fails("expects a map", "has", {list({}), 1});
}

TEST(Sequences, MapFilterReduce) {
  const Value xs = list({1, 2, 3, 4});
  EXPECT_EQ(shown("map", {xs, twice()}), "[2, 4, 6, 8]");
  EXPECT_EQ(shown("filter", {xs, is_even()}), "[2, 4]");
  EXPECT_EQ(shown("reduce", {xs, add()}), "10");
  EXPECT_EQ(shown("reduce", {xs, add(), 5}), "15");
  EXPECT_EQ(shown("reduce", {list({}), add(), 5}), "5");
  EXPECT_EQ(shown("map", {run("range", {3}), twice()}), "[0, 2, 4]");
  fails("empty list without a start", "reduce", {list({}), add()});
  fails("expects a function", "map", {xs, 5});
  fails("expects a function", "filter", {xs, 5});
  EXPECT_EQ(shown("any", {xs, is_even()}), "true");
  EXPECT_EQ(shown("all", {xs, is_even()}), "false");
  EXPECT_EQ(shown("any", {list({})}), "false");
  EXPECT_EQ(shown("all", {list({})}), "true");
  EXPECT_EQ(shown("all", {list({true, true})}), "true");
  EXPECT_EQ(shown("any", {list({false, false})}), "false");
  fails("any", "any", {list({1}), twice()});  // 2 is no truth value
}

TEST(Sequences, OrdersAndPairs) {
  EXPECT_EQ(shown("sorted", {list({3, 1.5, 2})}), "[1.5, 2.0, 3.0]");
  EXPECT_EQ(shown("sorted", {list({"b", "a"})}), "[\"a\", \"b\"]");
  EXPECT_EQ(shown("sorted", {list({1, 2, 3, 4}), is_even()}), "[1, 3, 2, 4]");
  EXPECT_EQ(shown("sorted", {list({1, 3, 2}), Value::missing(), true}), "[3, 2, 1]");
  EXPECT_EQ(shown("sorted", {list({})}), "[]");
  EXPECT_EQ(text(run("sorted", {list({std::nan(""), 1.0})})), "[1.0, NaN]");
  fails("cannot compare", "sorted", {list({1, "a"})});
  fails("cannot compare", "sorted", {list({map({}), map({})})});
  EXPECT_EQ(shown("reverse", {list({1, 2})}), "[2, 1]");
  EXPECT_EQ(shown("reverse", {"añb"}), "\"bña\"");
  EXPECT_EQ(text(run("reverse", {make<TokensObject>(std::vector<std::int32_t>{1, 2})})), "[2, 1]");
  EXPECT_EQ(shown("len", {run("unique", {list({1, 2, 1, 2.5, 2.5, "a", "a"})})}), "4");
  EXPECT_EQ(shown("unique", {list({3, 1, 3})}), "[3, 1]");
  EXPECT_EQ(shown("enumerate", {list({"a", "b"})}), "[(0, \"a\"), (1, \"b\")]");
  EXPECT_EQ(shown("enumerate", {list({"a"}), 5}), "[(5, \"a\")]");
  EXPECT_EQ(shown("zip", {list({1, 2, 3}), list({"a", "b"})}), "[(1, \"a\"), (2, \"b\")]");
  EXPECT_EQ(shown("get", {run("to_list", {tensor({1, 2, 3, 4}, {2, 2})}), 1}), "[3.0, 4.0]");
  EXPECT_EQ(shown("to_list", {tl::Tensor::from<float>({5}, {})}), "[5.0]");
  fails("cannot be iterated", "zip", {5});
  for (const char* name : {"reverse", "unique", "enumerate", "sorted", "to_list"}) {
    fails("cannot be iterated", name, {5});
  }
}

TEST(KvCaches, GrowByRowsAndShowThem) {
  const Value cache = run("KVCache::new_f32", {2});
  EXPECT_EQ(text(cache), "<KVCache: 2 layers>");
  fails("No cache entry for layer 1", "get_k", {cache, 1});
  for (int i = 0; i < 40; ++i) {
    const auto x = static_cast<float>(i);
    run("append", {cache, 0, tensor({x, x}, {1, 2}), tensor({-x}, {1, 1})});
  }
  const Value keys = run("get_k", {cache, 0});
  ASSERT_EQ(keys.tensor().shape(), (Shape{40, 2}));
  EXPECT_EQ(floats(keys)[78], 39);
  EXPECT_EQ(floats(run("get_v", {cache, 0}))[39], -39);
  // What was given out does not change.
  run("append", {cache, 0, tensor({7, 7}, {1, 2}), tensor({7}, {1, 1})});
  EXPECT_EQ(keys.tensor().shape(), (Shape{40, 2}));
  EXPECT_EQ(floats(keys)[78], 39);
  run("set", {cache, 0, tensor({1, 2}, {1, 2}), tensor({3}, {1, 1})});
  EXPECT_EQ(floats(run("get_k", {cache, 0})), (std::vector<float>{1, 2}));
  fails("do not go after", "append", {cache, 0, tensor({1}, {1, 1}), tensor({3}, {1, 1})});
  EXPECT_EQ(run("get_k", {cache, 0}).tensor().dim(0), 1);
  fails("Index 2 out of bounds for length 2", "get_k", {cache, 2});
  fails("Index 5 out of bounds for length 2", "append",
        {cache, 5, tensor({1}, {1, 1}), tensor({3}, {1, 1})});
  fails("expects a layer, keys and values", "set", {cache, 0, 5});
  run("clear", {cache});
  fails("No cache entry for layer 0", "get_v", {cache, 0});
  EXPECT_EQ(run("KVCache::new", {1}).as<KVCacheObject>().dtype, DType::F16);
  EXPECT_EQ(run("KVCache::new_f16", {1}).as<KVCacheObject>().dtype, DType::F16);
  for (const char* name : {"KVCache::new", "KVCache::new_f16", "KVCache::new_f32"}) {
    fails("an integer", name, {1.5});
    fails("a number of layers", name, {-1});
  }
  fails("get_k() expects", "get_k", {5, 0});
}

TEST(KvCaches, RowsOneByOneDoNotCopyWhatIsThere) {
  const Value cache = run("KVCache::new_f32", {1});
  const Value row = tensor(std::vector<float>(64, 1.0F), {1, 64});
  for (int i = 0; i < 17; ++i) run("append", {cache, 0, row, row});
  const auto address = [&] { return run("get_k", {cache, 0}).tensor().memory().data(); };
  const auto* before = address();
  for (int i = 17; i < 32; ++i) run("append", {cache, 0, row, row});
  EXPECT_EQ(address(), before);
}

TEST(KvCaches, TensorsGrowInTheirOwnMemory) {
  // As Tensor::create_cache gives it: room for 4 rows, none of them used.
  Value t = tl::Tensor::uninitialized({4, 2}, DType::F32, Device::cpu()).narrow(0, 0, 0);
  for (int i = 0; i < 4; ++i) {
    const auto x = static_cast<float>(i);
    const auto* before = t.tensor().memory().data();
    t = run("append", {t, tensor({x, x}, {1, 2})});
    EXPECT_EQ(t.tensor().memory().data(), before);
  }
  EXPECT_EQ(floats(t), (std::vector<float>{0, 0, 1, 1, 2, 2, 3, 3}));
  const Value longer = run("append", {t, tensor({9, 9}, {1, 2})});  // no room any more
  EXPECT_EQ(longer.tensor().dim(0), 5);
  EXPECT_EQ(t.tensor().dim(0), 4);
  // Two that go on from the same rows do not see each other's.
  const Value a = run("append", {longer, tensor({1, 1}, {1, 2})});
  const Value b = run("append", {longer, tensor({2, 2}, {1, 2})});
  EXPECT_EQ(floats(a)[10], 1);
  EXPECT_EQ(floats(b)[10], 2);
  EXPECT_EQ(floats(longer).size(), 10U);
  fails("do not go after", "append", {t, tensor({1, 2, 3}, {1, 3})});
}

}  // namespace tl::lang::test
