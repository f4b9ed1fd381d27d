"""What build systems of C projects want: make, Zephyr, ESP-IDF."""

from bytewright.bundle.packages.contents import PackageContents
from bytewright.codegen.writer import OWNERSHIP


def makefile(contents: PackageContents, cmake: str) -> dict[str, str]:
    """A file that a Makefile includes: it builds `lib<m>.a`."""
    del cmake
    model, prefix = contents.model, contents.names.prefix
    sources = " \\\n  ".join(contents.sources)
    return {
        f"{model}.mk": f"""# {OWNERSHIP}
# Include it from a Makefile, and link $({prefix}_LIBRARY) with $({prefix}_LDLIBS).
{prefix}_FOLDER := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
{prefix}_BUILD ?= build/{model}
{prefix}_OPTIMIZATION ?= -O2
{prefix}_CPPFLAGS := -I$({prefix}_FOLDER)/include
{prefix}_CFLAGS := -std=c99 {" ".join(contents.flags)}
{prefix}_LDLIBS := {"-lm" if contents.needs_math else ""}
{prefix}_LDFLAGS := -L$({prefix}_FOLDER)
{prefix}_LIBRARY := $({prefix}_BUILD)/lib{model}.a
{prefix}_SOURCES := {sources}
{prefix}_OBJECTS := $({prefix}_SOURCES:src/%.c=$({prefix}_BUILD)/%.o)

$({prefix}_BUILD)/%.o: $({prefix}_FOLDER)/src/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $({prefix}_CPPFLAGS) $(CFLAGS) $({prefix}_OPTIMIZATION) $({prefix}_CFLAGS) -MMD -c $< -o $@

$({prefix}_LIBRARY): $({prefix}_OBJECTS)
	$(AR) rcs $@ $^

-include $({prefix}_OBJECTS:.o=.d)
"""
    }


def zephyr(contents: PackageContents, cmake: str) -> dict[str, str]:
    """A module: what Zephyr finds in `zephyr/`."""
    del cmake
    model, prefix = contents.model, contents.names.prefix
    sources = "\n  ".join(f"${{CMAKE_CURRENT_LIST_DIR}}/../{path}" for path in contents.sources)
    return {
        "zephyr/module.yml": f"# {OWNERSHIP}\nname: {model}\nbuild:\n  cmake: zephyr\n  kconfig: zephyr/Kconfig\n",
        "zephyr/Kconfig": (
            f"# {OWNERSHIP}\n"
            f"config {prefix}\n"
            f'\tbool "{contents.summary}"\n'
            "\thelp\n"
            f"\t  Compiles the model; the application includes {model}.h.\n"
        ),
        "zephyr/CMakeLists.txt": f"""# {OWNERSHIP}
if(CONFIG_{prefix})
zephyr_include_directories(${{CMAKE_CURRENT_LIST_DIR}}/../include)
zephyr_library_named({model})
zephyr_library_sources(
  {sources})
zephyr_library_compile_options(-std=c99 {" ".join(contents.flags)})
endif()
""",
    }


def esp_idf(contents: PackageContents, cmake: str) -> dict[str, str]:
    """A component: its manifest, and a CMake file that is one of ESP-IDF there and elsewhere that of all bundles."""
    head, project, rest = cmake.partition("project(")
    component = f"""if(ESP_PLATFORM)
  idf_component_register(SRCS {" ".join(contents.sources)} INCLUDE_DIRS include)
  target_compile_options(${{COMPONENT_LIB}} PRIVATE -std=c99 {" ".join(contents.flags)})
  return()
endif()
"""
    return {
        "CMakeLists.txt": f"{head}{component}{project}{rest}",
        "idf_component.yml": (
            f'# {OWNERSHIP}\nversion: "{contents.version}"\ndescription: "{contents.summary}"\n'
            'dependencies:\n  idf: ">=5.0"\n'
        ),
    }
