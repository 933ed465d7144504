// The graph driven by hand: who waits for whom, what a submission is short of, what is given back and when.
#include "graph/graph.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "unit/support/graph_rig.h"

namespace simpler::graph {
namespace {

using test::Answer;
using test::GraphRig;
using Ids = std::vector<PTO2TaskId>;

ChipTensor rows(const ChipTensor& tensor, std::uint32_t first, std::uint32_t count) {
  return tensor.slice(0, first, first + count);
}

// ---- edges ----------------------------------------------------------------------------------------------------------

// Oldest first: the order in which the graph keeps them means nothing.
Ids oldest_first(Ids ids) {
  std::sort(ids.begin(), ids.end(), [](PTO2TaskId a, PTO2TaskId b) { return a.raw < b.raw; });
  return ids;
}

TEST(GraphEdges, AReaderWaitsForEveryOverlappingWriterAndNoOther) {
  GraphRig rig;
  const ChipTensor tensor = rig.external({8, 4});
  const Answer top = rig.updater(rows(tensor, 0, 4)), bottom = rig.updater(rows(tensor, 4, 4));
  EXPECT_TRUE(top.ready());
  EXPECT_TRUE(bottom.ready()) << "disjoint";
  EXPECT_EQ(rig.reader(rows(tensor, 0, 2)).producers(), Ids{top.id});
  EXPECT_EQ(oldest_first(rig.reader(rows(tensor, 3, 2)).producers()), (Ids{top.id, bottom.id}));
}

TEST(GraphEdges, AnUpdateThatCoversAWriteReplacesItForLaterReaders) {
  GraphRig rig;
  const ChipTensor tensor = rig.external({8, 4});
  const Answer first = rig.updater(rows(tensor, 0, 2)), second = rig.updater(tensor);
  EXPECT_EQ(second.producers(), Ids{first.id});
  EXPECT_EQ(rig.reader(rows(tensor, 0, 2)).producers(), Ids{second.id});
  const Answer part = rig.updater(rows(tensor, 0, 2));
  EXPECT_EQ(part.producers(), Ids{second.id});
  EXPECT_EQ(oldest_first(rig.reader(rows(tensor, 0, 2)).producers()), (Ids{second.id, part.id}))
      << "a partial update replaces nothing";
}

TEST(GraphEdges, AWriteOnlyAccessLooksNothingUpAndReplacesNothing) {
  GraphRig rig;
  const ChipTensor tensor = rig.external({8, 4});
  const Answer first = rig.writer(tensor), second = rig.writer(tensor);
  EXPECT_TRUE(second.producers().empty());
  EXPECT_EQ(oldest_first(rig.reader(tensor).producers()), (Ids{first.id, second.id}));
}

TEST(GraphEdges, ReadersAreNotTracked) {
  GraphRig rig;
  const ChipTensor tensor = rig.external({8, 4});
  rig.reader(tensor);
  EXPECT_TRUE(rig.updater(tensor).producers().empty());
}

TEST(GraphEdges, EveryUseOfAnOutputWaitsForItsCreatorAndKeepsItsMemory) {
  GraphRig rig;
  const Answer creator = rig.producer(64);
  ChipTensor tensor = creator.output();
  CoreTaskArgs no_dep;
  no_dep.add_no_dep(tensor);
  ChipTensor manual = tensor;
  manual.manual_dep = true;
  for (const Answer& user :
       {rig.reader(tensor), rig.writer(tensor), rig.updater(tensor), rig.submit(no_dep), rig.reader(manual)}) {
    EXPECT_EQ(user.producers().front(), creator.id);
    EXPECT_EQ(user.task().retained_count, 1u);
    EXPECT_FALSE(user.ready());
  }
}

TEST(GraphEdges, NoDepAndManualDepAccessesAreInvisible) {
  GraphRig rig;
  ChipTensor tensor = rig.external({8, 4}), manual = tensor;
  manual.manual_dep = true;
  const Answer writer = rig.updater(tensor);
  CoreTaskArgs no_dep;
  no_dep.add_no_dep(tensor);
  EXPECT_TRUE(rig.submit(no_dep).producers().empty());
  EXPECT_TRUE(rig.updater(manual).producers().empty());
  EXPECT_EQ(rig.reader(tensor).producers(), Ids{writer.id}) << "the manual update was not registered";
}

TEST(GraphEdges, ATaskDoesNotDependOnItselfAndProducersAreNamedOnce) {
  GraphRig rig;
  const ChipTensor tensor = rig.external({8, 4});
  const Answer writer = rig.updater(tensor);
  ChipTensor top = rows(tensor, 0, 4), all = tensor;
  CoreTaskArgs args;
  args.add_inout(top, all);
  args.add_input(top);
  EXPECT_EQ(rig.submit(args).producers(), Ids{writer.id});
}

TEST(GraphEdges, KindsOfOneProducerAddUp) {
  GraphRig rig;
  const Answer creator = rig.producer(64);
  const ChipTensor tensor = creator.output();
  const DepFlags wait = DEP_WAIT;
  CoreTaskArgs args;
  args.set_dependencies_with_kinds(&creator.id, &wait, 1);
  args.add_input(tensor);
  const Answer both = rig.submit(args);
  EXPECT_EQ(both.producers(), Ids{creator.id});
  EXPECT_EQ(both.task().retained_count, 1u);
  EXPECT_EQ(rig.after({creator.id}, DEP_WAIT).task().retained_count, 0u);
}

TEST(GraphEdges, AManualScopeLeavesAllOrderToExplicitDependencies) {
  GraphRig rig;
  const ChipTensor tensor = rig.external({8, 4});
  const Answer outside = rig.updater(tensor), creator = rig.producer(64);
  rig.graph.scopes().open(PTO2ScopeMode::MANUAL);
  EXPECT_TRUE(rig.updater(tensor).producers().empty());
  EXPECT_TRUE(rig.reader(creator.output()).producers().empty()) << "no edge to the creator either";
  EXPECT_EQ(rig.after({outside.id}).producers(), Ids{outside.id});
  rig.graph.scopes().close();
  EXPECT_EQ(rig.reader(tensor).producers(), Ids{outside.id}) << "the manual update was not registered";
}

TEST(GraphEdges, ADependencyOnAReclaimedTaskIsMet) {
  GraphRig rig;
  rig.graph.scopes().open(PTO2ScopeMode::AUTO);
  const Answer old = rig.producer(64);
  const ChipTensor tensor = old.output();
  rig.complete(old);
  rig.graph.scopes().close();
  ASSERT_TRUE(rig.graph.reclaim(1));
  EXPECT_TRUE(rig.after({old.id}).producers().empty());
  EXPECT_TRUE(rig.reader(tensor).producers().empty());
  EXPECT_TRUE(rig.graph.is_complete(old.id));
}

TEST(GraphEdges, ACompleteProducerIsAnEdgeButNothingToWaitFor) {
  GraphRig rig;
  const ChipTensor tensor = rig.external({8, 4});
  const Answer writer = rig.updater(tensor);
  rig.complete(writer);
  const Answer reader = rig.reader(tensor);
  EXPECT_EQ(reader.producers(), Ids{writer.id});
  EXPECT_TRUE(reader.ready());
}

// ---- readiness ------------------------------------------------------------------------------------------------------

TEST(GraphReadiness, ATaskBecomesReadyOnceWithItsLastProducer) {
  GraphRig rig;
  const Answer a = rig.producer(64), b = rig.producer(64), c = rig.producer(64);
  const Answer join = rig.after({a.id, b.id, c.id}), other = rig.after({b.id});
  EXPECT_FALSE(join.ready());
  EXPECT_TRUE(rig.complete(c).empty());
  EXPECT_EQ(rig.complete(b), Ids{other.id});
  EXPECT_EQ(rig.complete(a), Ids{join.id});
}

TEST(GraphReadiness, AnAllocationIsCompleteFromTheStart) {
  GraphRig rig;
  const Answer blocker = rig.plain();
  std::uint32_t shape = 64;
  const TensorCreateInfo info(&shape, 1, DataType::UINT8);
  CoreTaskArgs args;
  args.add_output(info);
  args.set_dependencies(&blocker.id, 1);
  const Answer alloc = rig.submit(args, Shape::kAlloc);
  ASSERT_TRUE(alloc.taken());
  EXPECT_FALSE(alloc.ready()) << "nothing is to be run";
  EXPECT_TRUE(rig.graph.is_complete(alloc.id));
  const Answer reader = rig.reader(alloc.output());
  EXPECT_EQ(reader.producers(), Ids{alloc.id});
  EXPECT_TRUE(reader.ready());
}

TEST(GraphReadiness, AFanInAndFanOutOfThousandsNeedsNoPool) {
  GraphRig rig(8192, 1024, 8192);
  const Answer source = rig.plain();
  Ids middle;
  std::vector<Answer> tasks;
  for (int i = 0; i < 4000; ++i) {
    tasks.push_back(rig.after({source.id}, DEP_WAIT));
    middle.push_back(tasks.back().id);
  }
  const Answer sink = rig.after(middle);
  ASSERT_TRUE(sink.taken()) << "needs a record larger than a chunk";
  EXPECT_EQ(rig.complete(source).size(), 4000u);
  for (std::size_t i = 0; i + 1 < tasks.size(); ++i) ASSERT_TRUE(rig.complete(tasks[i]).empty()) << i;
  EXPECT_EQ(rig.complete(tasks.back()), Ids{sink.id});
  rig.complete(sink);
  rig.graph.scopes().close();
  EXPECT_TRUE(rig.graph.reclaim_all());
  EXPECT_TRUE(rig.graph.all_reclaimed());
}

// ---- shortages ------------------------------------------------------------------------------------------------------

void expect_shortage(const Answer& answer, Resource resource, std::uint64_t requested, std::uint64_t used,
                     std::uint64_t capacity) {
  ASSERT_EQ(answer.outcome, Outcome::kShort);
  EXPECT_EQ(answer.shortage.resource, resource);
  EXPECT_EQ(answer.shortage.requested, requested);
  EXPECT_EQ(answer.shortage.used, used);
  EXPECT_EQ(answer.shortage.capacity, capacity);
}

TEST(GraphShortage, AWindowOf4HoldsThreeTasks) {
  GraphRig rig(4);
  std::vector<Answer> tasks;
  for (int i = 0; i < 3; ++i) tasks.push_back(rig.plain());
  const Answer fourth = rig.plain();
  expect_shortage(fourth, Resource::kWindow, 1, 3, 3);
  EXPECT_FALSE(fourth.shortage.hopeless());
  EXPECT_TRUE(rig.graph.held_by_open_scope(0));
  EXPECT_EQ(rig.graph.submitted_count(), 3u);
  EXPECT_EQ(rig.graph.scopes().task_count(), 3u) << "nothing has changed";
}

TEST(GraphShortage, AHeapOf1KiBHoldsOneOutput) {
  GraphRig rig(64, 1024);
  ASSERT_TRUE(rig.producer(1).taken());
  expect_shortage(rig.producer(1), Resource::kHeap, 1024, 1024, 1024);
  ASSERT_TRUE(rig.plain().taken()) << "a task without outputs needs no heap";
  const Answer large = rig.producer(32 * 1024);
  expect_shortage(large, Resource::kHeap, 32 * 1024, 1024, 1024);
  EXPECT_TRUE(large.shortage.hopeless()) << "more than there will ever be";
}

TEST(GraphShortage, AbsurdShapesAreTooLargeInsteadOfWrappingToSmall) {
  GraphRig rig;
  const std::uint32_t shape[] = {1u << 31, 1u << 31, 1u << 31, 1u << 31, 1u << 31};
  const TensorCreateInfo info(shape, 5, DataType::INT64);
  CoreTaskArgs args;
  for (int i = 0; i < 32; ++i) args.add_output(info);
  const Answer answer = rig.submit(args);
  ASSERT_EQ(answer.outcome, Outcome::kShort);
  EXPECT_EQ(answer.shortage.resource, Resource::kHeap);
  EXPECT_TRUE(answer.shortage.hopeless());
}

TEST(GraphShortage, EdgesOfRunningProducersAreChargedUntilTheirConsumerIsReclaimed) {
  GraphRig rig(64, 1024, 4);
  const Answer a = rig.plain(), b = rig.plain(), c = rig.plain();
  rig.graph.scopes().open(PTO2ScopeMode::AUTO);
  const Answer join = rig.after({a.id, b.id, c.id});
  ASSERT_TRUE(join.taken());
  expect_shortage(rig.after({a.id, b.id}), Resource::kDependencies, 2, 3, 4);
  ASSERT_TRUE(rig.after({a.id}).taken()) << "exactly four";
  rig.graph.scopes().close();
  EXPECT_TRUE(rig.after({a.id, b.id}).taken()) << "ring 0 has a budget of its own";
  rig.complete(a);
  rig.complete(b);
  rig.complete(c);
  rig.complete(join);
  rig.graph.scopes().open(PTO2ScopeMode::AUTO);
  rig.graph.reclaim(1);
  const Answer d = rig.plain();
  EXPECT_TRUE(rig.after({d.id, a.id, b.id}).taken()) << "the three of the join were given back";
}

TEST(GraphShortage, CompleteProducersAreNotChargedUnlessTheyAreBeyond64) {
  GraphRig rig(256, 1024, 4);
  Ids ids;
  for (int i = 0; i < 69; ++i) {
    const Answer task = rig.plain();
    rig.complete(task);
    ids.push_back(task.id);
  }
  EXPECT_TRUE(rig.after(Ids(ids.begin(), ids.begin() + 64)).taken());
  EXPECT_TRUE(rig.after(Ids(ids.begin(), ids.begin() + 65)).taken());
  expect_shortage(rig.after(Ids(ids.begin(), ids.begin() + 68)), Resource::kSpill, 4, 1, 4);
  EXPECT_TRUE(rig.after(Ids(ids.begin(), ids.begin() + 67)).taken());
  const Answer hopeless = rig.after(ids);
  expect_shortage(hopeless, Resource::kSpill, 5, 4, 4);
  EXPECT_TRUE(hopeless.shortage.hopeless());
}

TEST(GraphShortage, TheTableOfWritesHoldsItsCapacity) {
  GraphRig rig(4096, 1024);
  const ChipTensor tensor = rig.external({TensorMap::kCapacity}, DataType::INT8);
  std::vector<ChipTensor> pieces(32);
  Answer last;
  for (std::uint32_t task = 0; task < TensorMap::kCapacity / 32; ++task) {
    CoreTaskArgs args;
    for (std::uint32_t i = 0; i < 32; ++i) {
      pieces[i] = rows(tensor, task * 32 + i, 1);
      args.add_output(pieces[i]);
    }
    last = rig.submit(args);
    ASSERT_TRUE(last.taken()) << task;
  }
  expect_shortage(rig.writer(rows(tensor, 0, 1)), Resource::kRegions, 1, TensorMap::kCapacity, TensorMap::kCapacity);
  EXPECT_TRUE(rig.reader(rows(tensor, 0, 1)).taken()) << "reads are not entered";
}

TEST(GraphShortage, AShortSubmissionTakesNoWriteOutOfTheTable) {
  GraphRig rig(4);
  const ChipTensor tensor = rig.external({8, 4});
  rig.graph.scopes().open(PTO2ScopeMode::AUTO);
  const Answer writer = rig.updater(tensor);
  rig.plain();
  rig.plain();
  ASSERT_EQ(rig.updater(tensor).outcome, Outcome::kShort) << "would cover the first write";
  rig.graph.scopes().open(PTO2ScopeMode::AUTO);
  EXPECT_EQ(rig.reader(tensor).producers(), Ids{writer.id});
}

TEST(GraphRefusal, NamesWhatIsWrongWithADependencyAndChangesNothing) {
  struct Case {
    const char* name;
    PTO2TaskId id;
    DepFlags kind;
    const char* text;
  };
  GraphRig rig;
  const Answer real = rig.plain();
  const Case cases[] = {
      {"invalid", PTO2TaskId::invalid(), DEP_WAIT, "not a task id"},
      {"ring 4", PTO2TaskId{std::uint64_t{4} << 32}, DEP_WAIT, "not a task id"},
      {"future", PTO2TaskId::make(0, 1), DEP_WAIT, "does not exist yet"},
      {"ring without tasks", PTO2TaskId::make(2, 0), DEP_WAIT, "does not exist yet"},
      {"retain only", real.id, DEP_RETAIN, "without DEP_WAIT"},
      {"no kind", real.id, DEP_NONE, "without DEP_WAIT"},
  };
  for (const Case& c : cases) {
    const Answer answer = rig.after({real.id, c.id}, c.kind);
    ASSERT_EQ(answer.outcome, Outcome::kRefused) << c.name;
    EXPECT_NE(std::string(answer.refusal).find(c.text), std::string::npos) << c.name << ": " << answer.refusal;
  }
  EXPECT_EQ(rig.graph.submitted_count(), 1u);
  rig.complete(real);
  rig.graph.scopes().close();
  rig.graph.reclaim_all();
  EXPECT_TRUE(rig.graph.all_reclaimed()) << "a refused submission retains nothing";
}

// ---- reclaim --------------------------------------------------------------------------------------------------------

// How many tasks of a ring are live.
std::size_t live(const GraphRig& rig, int ring) {
  std::size_t count = 0;
  rig.graph.for_each_live(ring, [&](PTO2TaskId, const Task&) { ++count; });
  return count;
}

TEST(GraphReclaim, GoesInOrderOfSubmission) {
  GraphRig rig;
  rig.graph.scopes().open(PTO2ScopeMode::AUTO);
  const Answer a = rig.plain(), b = rig.plain(), c = rig.plain();
  rig.graph.scopes().close();
  rig.complete(b);
  EXPECT_FALSE(rig.graph.reclaim(1));
  EXPECT_EQ(live(rig, 1), 3u);
  rig.complete(a);
  EXPECT_TRUE(rig.graph.reclaim(1));
  EXPECT_EQ(live(rig, 1), 1u) << "up to the first that runs";
  rig.complete(c);
  EXPECT_TRUE(rig.graph.reclaim(1));
  EXPECT_TRUE(rig.graph.all_reclaimed());
}

TEST(GraphReclaim, StopsWhereItIsToldTo) {
  GraphRig rig;
  rig.graph.scopes().open(PTO2ScopeMode::AUTO);
  for (int i = 0; i < 5; ++i) rig.complete(rig.plain());
  rig.graph.scopes().close();
  EXPECT_TRUE(rig.graph.reclaim(1, 2));
  EXPECT_EQ(live(rig, 1), 3u);
}

TEST(GraphReclaim, StopsAtTheOldestTaskOfAnOpenScope) {
  GraphRig rig;
  const Answer outer = rig.plain();
  rig.graph.scopes().open(PTO2ScopeMode::AUTO);
  const Answer inner = rig.plain();
  rig.complete(outer);
  rig.complete(inner);
  EXPECT_FALSE(rig.graph.reclaim_all()) << "both scopes are open";
  EXPECT_TRUE(rig.graph.held_by_open_scope(0));
  EXPECT_TRUE(rig.graph.held_by_open_scope(1));
  rig.graph.scopes().close();
  EXPECT_FALSE(rig.graph.held_by_open_scope(1));
  EXPECT_TRUE(rig.graph.reclaim_all()) << "inner work is recycled while the outer scope is open";
  EXPECT_EQ(live(rig, 0), 1u);
  rig.graph.scopes().close();
  EXPECT_TRUE(rig.graph.reclaim_all());
  EXPECT_TRUE(rig.graph.all_reclaimed());
}

TEST(GraphReclaim, DeepScopesShareARingAndHoldEachOthersTasks) {
  GraphRig rig;
  for (int depth = 1; depth < 4; ++depth) rig.graph.scopes().open(PTO2ScopeMode::AUTO);
  rig.complete(rig.plain());
  rig.graph.scopes().open(PTO2ScopeMode::AUTO);
  rig.complete(rig.plain());
  rig.graph.scopes().close();
  EXPECT_FALSE(rig.graph.reclaim(3)) << "behind the task of the scope at depth 3";
  rig.graph.scopes().close();
  EXPECT_TRUE(rig.graph.reclaim(3));
  EXPECT_EQ(live(rig, 3), 0u);
}

TEST(GraphReclaim, ARetainedProducerStaysUntilItsConsumerIsDoneAndAWaitedOneDoesNot) {
  for (const DepFlags kind : {DEP_WAIT | DEP_RETAIN, DepFlags{DEP_WAIT}}) {
    GraphRig rig;
    rig.graph.scopes().open(PTO2ScopeMode::AUTO);
    const Answer producer = rig.producer(64);
    rig.graph.scopes().close();
    const Answer consumer = rig.after({producer.id}, kind);
    rig.complete(producer);
    EXPECT_EQ(rig.graph.reclaim(1), kind == DEP_WAIT);
    rig.complete(consumer);
    rig.graph.reclaim(1);
    EXPECT_EQ(live(rig, 1), 0u);
  }
}

TEST(GraphReclaim, ACompleteProducerCanStillBeRetained) {
  GraphRig rig;
  rig.graph.scopes().open(PTO2ScopeMode::AUTO);
  const Answer producer = rig.producer(64);
  rig.complete(producer);
  rig.graph.scopes().close();
  const Answer consumer = rig.after({producer.id});
  EXPECT_TRUE(consumer.ready());
  EXPECT_FALSE(rig.graph.reclaim(1)) << "its memory is in use";
  rig.complete(consumer);
  EXPECT_TRUE(rig.graph.reclaim(1));
}

TEST(GraphReclaim, GivesOutputMemoryBackWithItsTask) {
  GraphRig rig(64, 2048);
  for (int round = 0; round < 10; ++round) {
    rig.graph.scopes().open(PTO2ScopeMode::AUTO);
    const Answer a = rig.producer(1024), b = rig.producer(1000);
    ASSERT_TRUE(b.taken()) << round;
    ASSERT_EQ(rig.producer(1).outcome, Outcome::kShort);
    rig.complete(a);
    rig.complete(b);
    rig.graph.scopes().close();
    ASSERT_TRUE(rig.graph.reclaim(1));
  }
}

TEST(GraphReclaim, IdsGoOnWhenTheWindowWrapsAndOldOnesNeverMeetTheNewTask) {
  GraphRig rig(4);
  std::vector<Answer> all;
  const ChipTensor tensor = rig.external({8, 4});
  for (int round = 0; round < 100; ++round) {
    rig.graph.scopes().open(PTO2ScopeMode::AUTO);
    const Answer fresh = rig.updater(tensor);
    ASSERT_TRUE(fresh.taken());
    ASSERT_EQ(fresh.id.local(), static_cast<std::uint32_t>(2 * round));
    ASSERT_TRUE(fresh.producers().empty()) << "the writes of earlier rounds went with their tasks";
    if (!all.empty()) {
      const PTO2TaskId same_slot = PTO2TaskId::make(1, fresh.id.local() - 4);
      ASSERT_TRUE(round < 2 || rig.graph.slot_of(same_slot) == rig.graph.slot_of(fresh.id));
      ASSERT_TRUE(round < 2 || rig.graph.is_complete(same_slot));
      ASSERT_FALSE(rig.graph.is_complete(fresh.id));
    }
    const Answer after = rig.after({PTO2TaskId::make(1, fresh.id.local() - (round < 2 ? 0 : 4)), fresh.id});
    ASSERT_EQ(after.producers(), Ids{fresh.id}) << "an old id is a met dependency, whatever its slot holds now";
    ASSERT_EQ(rig.complete(fresh), Ids{after.id});
    rig.complete(after);
    rig.graph.scopes().close();
    ASSERT_TRUE(rig.graph.reclaim(1));
    all.push_back(fresh);
  }
}

TEST(GraphReclaim, ANewRunForgetsAnUnfinishedOne) {
  GraphRig rig(4, 1024, 4);
  for (int run = 0; run < 5; ++run) {
    const ChipTensor tensor = rig.external({4});
    const Answer first = rig.producer(1024);
    ASSERT_TRUE(first.taken()) << run;
    ASSERT_EQ(first.id.local(), 0u);
    const Answer second = rig.updater(tensor);
    const Answer third = rig.after({first.id, second.id});
    ASSERT_TRUE(third.taken()) << run;
    ASSERT_EQ(third.producers().size(), 2u);
    if (run % 2 == 0) rig.complete(second);
    rig.graph.scopes().open(PTO2ScopeMode::MANUAL);
    rig.begin();
    EXPECT_TRUE(rig.graph.all_reclaimed());
    EXPECT_EQ(rig.graph.submitted_count(), 0u);
    EXPECT_FALSE(rig.graph.scopes().manual());
    EXPECT_TRUE(rig.reader(tensor).producers().empty());
    rig.begin();
  }
}

TEST(GraphReclaim, NamesATaskWhoseCompletionHelpsAtMostSoFarAhead) {
  GraphRig rig;
  std::uint32_t slot = 0;
  EXPECT_FALSE(rig.graph.oldest_pending(1, 0, &slot)) << "empty";
  rig.graph.scopes().open(PTO2ScopeMode::AUTO);
  const Answer a = rig.plain(), b = rig.plain(), c = rig.plain();
  EXPECT_FALSE(rig.graph.oldest_pending(1, 0, &slot)) << "held by the open scope";
  rig.graph.scopes().close();
  ASSERT_TRUE(rig.graph.oldest_pending(1, 0, &slot));
  EXPECT_EQ(slot, rig.graph.slot_of(a.id));
  ASSERT_TRUE(rig.graph.oldest_pending(1, 1, &slot));
  EXPECT_EQ(slot, rig.graph.slot_of(b.id));
  ASSERT_TRUE(rig.graph.oldest_pending(1, 100, &slot));
  EXPECT_EQ(slot, rig.graph.slot_of(c.id));
  EXPECT_FALSE(rig.graph.reclaimable(slot));
  rig.complete(c);
  EXPECT_TRUE(rig.graph.reclaimable(slot));
}

// ---- records --------------------------------------------------------------------------------------------------------

TEST(GraphRecord, HoldsArgumentsInOrderWithOutputsIn1KiBStepsFilledWithTheirInitialValue) {
  GraphRig rig;
  ChipTensor given = rig.external({4});
  const std::uint32_t shape[] = {3, 5};
  TensorCreateInfo first(shape, 2, DataType::INT16), second(shape, 1, DataType::INT64);
  first.set_initial_value(std::int16_t{-2});
  second.set_initial_value(std::int64_t{0x0102030405060708});
  CoreTaskArgs args;
  args.add_output(first);
  args.add_input(given);
  args.add_output(second);
  args.add_scalar(std::int32_t{-1}, 2.5f);
  const Answer answer = rig.submit(args);
  ASSERT_TRUE(answer.taken());
  EXPECT_EQ(answer.submitted.outputs, 0b101u);
  const Task& task = answer.task();
  ASSERT_EQ(task.tensor_count, 3);
  ASSERT_EQ(task.scalar_count, 2);
  EXPECT_EQ(task.scalars()[0], 0xFFFFFFFFu);
  EXPECT_EQ(from_u64<float>(task.scalars()[1]), 2.5f);
  const ChipTensor &a = task.tensors()[0], &b = task.tensors()[1], &c = task.tensors()[2];
  EXPECT_EQ(b.buffer.addr, given.buffer.addr);
  EXPECT_EQ(a.owner_task_id, answer.id);
  EXPECT_EQ(c.owner_task_id, answer.id);
  EXPECT_EQ(c.buffer.addr, a.buffer.addr + 1024);
  EXPECT_EQ(a.buffer.size, 30u);
  EXPECT_EQ(a.ndims, 2u);
  for (int i = 0; i < 15; ++i) EXPECT_EQ(a.data_as<std::int16_t>()[i], -2);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(c.data_as<std::int64_t>()[i], 0x0102030405060708);
}

TEST(GraphRecord, KeepsThePredicatesElementByAddress) {
  GraphRig rig;
  ChipTensor flags = rig.external({4, 4}, DataType::INT16);
  CoreTaskArgs args;
  args.set_predicate({{&flags, 2, {1, 2}}, PredicateOp::GE, -7});
  const Answer answer = rig.submit(args);
  ASSERT_TRUE(answer.task().has_predicate);
  const Predicate& predicate = *answer.task().predicate();
  EXPECT_EQ(predicate.address, flags.data_as<std::int16_t>() + 6);
  EXPECT_EQ(predicate.width, 2);
  EXPECT_EQ(predicate.target, -7);
  EXPECT_EQ(predicate.op, PredicateOp::GE);
  EXPECT_FALSE(rig.submit(args, Shape::kDummy).task().has_predicate) << "a dummy runs nothing";
  flags.buffer.addr = 0;
  EXPECT_FALSE(rig.submit(args).task().has_predicate) << "a tensor without memory is no predicate";
}

// ---- accessors ------------------------------------------------------------------------------------------------------

TEST(GraphAccessors, AreTheWritersAndForAWriteTheirRunningReadersToo) {
  GraphRig rig;
  const ChipTensor tensor = rig.external({8, 4});
  Ids found;
  rig.graph.find_accessors(tensor, true, &found);
  EXPECT_TRUE(found.empty());
  const Answer top = rig.updater(rows(tensor, 0, 4)), bottom = rig.updater(rows(tensor, 4, 4));
  const Answer reader = rig.reader(rows(tensor, 0, 1)), done = rig.reader(rows(tensor, 1, 1));
  rig.graph.find_accessors(rows(tensor, 0, 2), false, &found);
  EXPECT_EQ(found, Ids{top.id});
  rig.complete(top);
  rig.complete(done);
  rig.graph.find_accessors(rows(tensor, 0, 2), true, &found);
  EXPECT_EQ(found, (Ids{top.id, reader.id}));
  rig.graph.find_accessors(tensor, false, &found);
  EXPECT_EQ(found, (Ids{top.id, bottom.id}));
}

TEST(GraphAccessors, IncludeTheCreatorOfAnOutput) {
  GraphRig rig;
  const Answer creator = rig.producer(64);
  Ids found;
  rig.graph.find_accessors(creator.output(), false, &found);
  EXPECT_EQ(found, Ids{creator.id});
  ChipTensor manual = creator.output();
  manual.manual_dep = true;
  const Answer user = rig.updater(creator.output());
  rig.graph.find_accessors(manual, false, &found);
  EXPECT_EQ(found, Ids{creator.id}) << "untracked accesses know only the creator";
  rig.graph.find_accessors(creator.output(), false, &found);
  EXPECT_EQ(found, (Ids{creator.id, user.id}));
}

}  // namespace
}  // namespace simpler::graph
