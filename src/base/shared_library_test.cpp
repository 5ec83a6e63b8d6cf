#include "weir/base/shared_library.hpp"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(SharedLibrary, ItsFunctionsAreFound_AndWhatIsMissingIsNamed) {
  auto library = load_library("libm.so.6");
  ASSERT_TRUE(library) << library.error().message;
  auto floor = find_symbol(*library, "floor");
  ASSERT_TRUE(floor);
  EXPECT_EQ(reinterpret_cast<double (*)(double)>(*floor)(3.5), 3);
  EXPECT_EQ(find_symbol(*library, "weir_nothing").error().message,
            "the library lacks weir_nothing: it is of another kind or version");
  std::string why = load_library("/nowhere/libweir.so").error().message;
  EXPECT_TRUE(why.starts_with("the library /nowhere/libweir.so cannot be loaded: ")) << why;
}

}  // namespace
}  // namespace weir
