// The tables of kernels for single instruction sets (include/kernel/tile_kernels.h), function by function, against the
// portable loops and plain arithmetic. What instructions make of them is in the other tests, which run with each table.
#include "unit/support/tile_support.h"

using namespace tile_test;

namespace {

using simpler::tile::available_kernels;

class TileTable : public TileTest {
 protected:
  template <class Check> void for_each_table(Check check) {
    for (auto table = available_kernels(); *table != nullptr; ++table) {
      SCOPED_TRACE((*table)->target);
      check(**table);
    }
  }
};

// All halves, all bfloats, or floats of all kinds.
std::vector<uint16_t> all_codes() {
  std::vector<uint16_t> codes(65536);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint16_t>(i);
  return codes;
}
std::vector<float> floats_of_all_kinds() {
  Random random(7);
  std::vector<float> values(40000);
  for (float& value : values) value = random.bits<float>();
  for (int code = 0; code < 65536; ++code) {
    values.push_back(static_cast<float>(kHalfFormat.decode(static_cast<uint16_t>(code))));
    values.push_back(std::nextafter(values.back(), 0.0f));
    values.push_back(bits_as<float>(static_cast<uint32_t>(code) << 16 | 0x8000u));  // halfway between two bfloats
  }
  return values;
}
template <class D, class S>
void expect_same_codes(void (*by_table)(D*, const S*, int64_t), D (*by_element)(S), const std::vector<S>& inputs) {
  std::vector<D> results(inputs.size());
  by_table(results.data(), inputs.data(), static_cast<int64_t>(inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i)
    ASSERT_TRUE(same_bits(results[i], by_element(inputs[i]))) << "element " << i << ": " << inputs[i];
}

// A matrix of any layout with its values, in memory that ends where the last element does.
struct Matrix {
  std::vector<double> values;  // row-major
  std::vector<unsigned char> memory;
  SimplerTileMatrix matrix;
  int rows, cols;

  template <class T> static Matrix make(int rows, int cols, int32_t element, const SimplerTileAxis& row,
                                        const SimplerTileAxis& col, Random& random) {
    Matrix made;
    made.rows = rows, made.cols = cols;
    made.matrix = {nullptr, row, col, element};
    const auto last = static_cast<size_t>(place(row, rows - 1) + place(col, cols - 1));
    made.memory.resize((last + 1) * sizeof(T) + 64 * sizeof(T));  // boxes may reach further than their last element
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < cols; ++c) {
        const T value = kFloating<T> ? encode<T>(random.in(-1, 1)) : random.value<T>();
        made.values.push_back(decode(value));
        std::memcpy(made.at(r, c, sizeof(T)), &value, sizeof(T));
      }
    return made;
  }
  static int64_t place(const SimplerTileAxis& axis, int64_t i) {
    if (axis.run == 0) return i * axis.step;
    return (i + axis.first) / axis.run * axis.block + (i + axis.first) % axis.run * axis.step;
  }
  unsigned char* at(int r, int c, size_t bytes) {
    return memory.data() + static_cast<size_t>(place(matrix.row, r) + place(matrix.col, c)) * bytes;
  }
  SimplerTileMatrix view() {
    SimplerTileMatrix view = matrix;
    view.base = memory.data();
    return view;
  }
  template <class T> T get(int r, int c) {
    T value;
    std::memcpy(&value, at(r, c, sizeof(T)), sizeof(T));
    return value;
  }
};

enum class Order { kRows, kColumns, kBoxes, kBoxesFromTheMiddle };
// Axes of a matrix of at most rows x cols with box rows of 8 elements.
std::pair<SimplerTileAxis, SimplerTileAxis> axes(Order order, int rows, int cols) {
  switch (order) {
    case Order::kRows: return {{cols, 0, 0, 0}, {1, 0, 0, 0}};
    case Order::kColumns: return {{1, 0, 0, 0}, {rows, 0, 0, 0}};
    case Order::kBoxes: return {{8, 0, 0, 0}, {1, int64_t{rows} * 8, 8, 0}};
    default: return {{8, int64_t{cols + 8} * 16, 16, 5}, {1, 128, 8, 3}};
  }
}

template <class T, class A> void expect_product(const SimplerTileKernels& table, int32_t element, int m, int k, int n,
                                                Order left_order, Order out_order, bool from_start, uint64_t seed) {
  Random random(seed);
  const auto left_axes = axes(left_order, m, k), right_axes = axes(Order::kRows, k, n),
             out_axes = axes(out_order, m, n);
  const int32_t out_element = std::is_same_v<A, float> ? SIMPLER_TILE_FLOAT : SIMPLER_TILE_INT32;
  Matrix left = Matrix::make<T>(m, k, element, left_axes.first, left_axes.second, random);
  Matrix right = Matrix::make<T>(k, n, element, right_axes.first, right_axes.second, random);
  Matrix out = Matrix::make<A>(m, n, out_element, out_axes.first, out_axes.second, random);
  const Matrix before = out;
  SimplerTileProduct product = {
      out.view(), from_start ? out.view() : SimplerTileMatrix{}, left.view(), right.view(), m, n, k};
  table.multiply(&product);
  std::vector<unsigned char> touched(out.memory.size());
  for (int r = 0; r < m; ++r)
    for (int c = 0; c < n; ++c) {
      double sum = from_start ? before.values[static_cast<size_t>(r * n + c)] : 0;
      for (int x = 0; x < k; ++x)
        sum += left.values[static_cast<size_t>(r * k + x)] * right.values[static_cast<size_t>(x * n + c)];
      if constexpr (std::is_same_v<A, float>) {
        ASSERT_NEAR(out.get<A>(r, c), sum, 1e-6 * k) << r << ", " << c;
      } else {
        const auto wrapped = static_cast<int32_t>(static_cast<uint32_t>(static_cast<int64_t>(sum)));
        ASSERT_EQ(out.get<A>(r, c), wrapped) << r << ", " << c;
      }
      std::memset(touched.data() + (out.at(r, c, sizeof(A)) - out.memory.data()), 1, sizeof(A));
    }
  for (size_t i = 0; i < touched.size(); ++i)
    ASSERT_TRUE(touched[i] != 0 || out.memory[i] == before.memory[i]) << "byte " << i << " beside the result";
}

}  // namespace

TEST_F(TileTable, ListsDistinctTargetsAndFillsEveryFunction) {
  std::vector<std::string> names;
  for_each_table([&](const SimplerTileKernels& table) {
    EXPECT_EQ(table.size, sizeof table);
    for (const std::string& name : names) EXPECT_NE(name, table.target);
    names.push_back(table.target);
    EXPECT_TRUE(table.multiply && table.exp && table.log && table.from_half && table.to_half && table.from_bfloat &&
                table.to_bfloat && table.transpose_bytes);
  });
}

TEST_F(TileTable, ConvertsToTheSameBitsAsThePortableLoops) {
  namespace td = pto::tile_detail;
  for_each_table([&](const SimplerTileKernels& table) {
    expect_same_codes<uint16_t, float>(
        table.to_half, [](float x) { return td::half_bits_from_float(x); }, floats_of_all_kinds());
    expect_same_codes<uint16_t, float>(
        table.to_bfloat, [](float x) { return td::bfloat_bits_from_float(x); }, floats_of_all_kinds());
    expect_same_codes<float, uint16_t>(
        table.from_bfloat, [](uint16_t x) { return td::float_from_bfloat_bits(x); }, all_codes());
    std::vector<float> results(65536);
    table.from_half(results.data(), all_codes().data(), 65536);
    for (int code = 0; code < 65536; ++code)  // a signalling NaN may come back quiet
      ASSERT_TRUE(same_value(results[static_cast<size_t>(code)], td::float_from_half_bits(static_cast<uint16_t>(code))))
          << code;
  });
}

TEST_F(TileTable, TransposesBytesOfAnyShapeAndTouchesNoOthers) {
  Random random(11);
  for_each_table([&](const SimplerTileKernels& table) {
    for (const int64_t rows : {1, 15, 16, 17, 31, 48, 64, 100, 129})
      for (const int64_t cols : {1, 15, 16, 17, 40, 128}) {
        const int64_t src_step = cols + 3, dst_step = rows + 5;
        std::vector<uint8_t> src(static_cast<size_t>(rows * src_step)), before(static_cast<size_t>(cols * dst_step));
        for (uint8_t& byte : src) byte = random.bits<uint8_t>();
        for (uint8_t& byte : before) byte = random.bits<uint8_t>();
        std::vector<uint8_t> dst = before;
        table.transpose_bytes(dst.data(), dst_step, src.data(), src_step, rows, cols);
        for (int64_t c = 0; c < cols; ++c)
          for (int64_t r = 0; r < dst_step; ++r) {
            const auto at = static_cast<size_t>(c * dst_step + r);
            const uint8_t right = r < rows ? src[static_cast<size_t>(r * src_step + c)] : before[at];
            ASSERT_EQ(dst[at], right) << rows << " x " << cols << ": " << r << ", " << c;
          }
      }
  });
}

TEST_F(TileTable, ExpAndLogStayWithinTwoUnitsOfTheLastPlace) {
  Random random(3);
  std::vector<float> inputs = {0.0f, -0.0f, 1.0f, -1.0f, 88.7f, 88.73f, 89.5f, 1e30f, -87.5f, -103.9f, -104.6f, -1e30f};
  for (const double special : {HUGE_VAL, -HUGE_VAL, std::nan("")}) inputs.push_back(static_cast<float>(special));
  for (int i = 0; i < 30000; ++i) inputs.push_back(static_cast<float>(random.in(-105, 90)));
  for (int i = 0; i < 30000; ++i) inputs.push_back(random.bits<float>());
  const auto near = [](float got, double exact) {
    const float right = static_cast<float>(exact);
    if (!std::isfinite(right) || right == 0) return same_value(got, right) || std::fabs(got) < 3e-45f;
    const double unit = std::max(std::ldexp(1.0, std::ilogb(right) - 23), std::ldexp(1.0, -149));
    return std::fabs(got - exact) <= 2 * unit;
  };
  for_each_table([&](const SimplerTileKernels& table) {
    std::vector<float> results(inputs.size());
    table.exp(results.data(), inputs.data(), static_cast<int64_t>(inputs.size()));
    for (size_t i = 0; i < inputs.size(); ++i)
      ASSERT_TRUE(near(results[i], std::exp(static_cast<double>(inputs[i]))))
          << "exp(" << inputs[i] << ") = " << results[i];
    table.log(results.data(), inputs.data(), static_cast<int64_t>(inputs.size()));
    for (size_t i = 0; i < inputs.size(); ++i)
      ASSERT_TRUE(near(results[i], std::log(static_cast<double>(inputs[i]))))
          << "log(" << inputs[i] << ") = " << results[i];
  });
}

TEST_F(TileTable, AValueDoesNotDependOnItsPlaceAndNothingBesideIsWritten) {
  Random random(4);
  const auto inputs = random.values<float>(67);
  for_each_table([&](const SimplerTileKernels& table) {
    std::vector<float> whole(67);
    table.exp(whole.data(), inputs.data(), 67);
    for (int first = 0; first < 67; ++first)
      for (int count : {0, 1, 3, 7, 8, 15, 16, 17, 33}) {
        if (first + count > 67) continue;
        std::vector<float> part(67, -1.0f);
        table.exp(part.data() + first, inputs.data() + first, count);
        for (int i = 0; i < 67; ++i)
          ASSERT_EQ(part[static_cast<size_t>(i)],
                    i >= first && i < first + count ? whole[static_cast<size_t>(i)] : -1.0f);
      }
  });
}

TEST_F(TileTable, MultipliesOperandsOfAllTypesLayoutsAndExtents) {
  uint64_t seed = 100;
  for_each_table([&](const SimplerTileKernels& table) {
    for (const auto& [m, k, n] :
         {std::array{1, 1, 1}, {16, 16, 16}, {7, 19, 35}, {64, 128, 64}, {13, 300, 50}, {130, 129, 33}, {9, 8, 96}})
      for (const Order left : {Order::kRows, Order::kColumns, Order::kBoxes, Order::kBoxesFromTheMiddle})
        for (const Order out : {Order::kRows, Order::kBoxes, Order::kBoxesFromTheMiddle})
          for (const bool from_start : {false, true}) {
            SCOPED_TRACE(testing::Message() << m << " x " << k << " x " << n << ", left " << static_cast<int>(left)
                                            << ", out " << static_cast<int>(out) << ", start " << from_start);
            expect_product<float, float>(table, SIMPLER_TILE_FLOAT, m, k, n, left, out, from_start, ++seed);
            expect_product<::half, float>(table, SIMPLER_TILE_HALF, m, k, n, left, out, from_start, ++seed);
            expect_product<::bfloat16_t, float>(table, SIMPLER_TILE_BFLOAT, m, k, n, left, out, from_start, ++seed);
            expect_product<int8_t, int32_t>(table, SIMPLER_TILE_INT8, m, k, n, left, out, from_start, ++seed);
            if (HasFatalFailure()) return;
          }
  });
}
