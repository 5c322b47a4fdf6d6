//! Compiles the preloaded library (native/) into OUT_DIR: a shared object without dependencies.

use std::path::{Path, PathBuf};
use std::{env, process::Command};

fn main() {
    // cargo watches all files in these folders.
    println!("cargo:rerun-if-changed=native");
    println!("cargo:rerun-if-changed=interfaces");
    let target = env::var("TARGET").unwrap_or_default();
    let library = PathBuf::from(env::var("OUT_DIR").unwrap_or_default()).join("libiodock_preload.so");
    println!("cargo:rustc-env=IODOCK_PRELOAD_LIBRARY={}", library.display());
    let interfaces = library.with_file_name("libiodock_interfaces.so");
    println!("cargo:rustc-env=IODOCK_INTERFACES_LIBRARY={}", interfaces.display());
    let with_stdio = library.with_file_name("libiodock_interfaces_stdio.so");
    println!("cargo:rustc-env=IODOCK_INTERFACES_STDIO_LIBRARY={}", with_stdio.display());
    if !target.starts_with("x86_64") || !target.contains("linux") {
        // On other machines the back end reports that it is not available.
        std::fs::write(&library, b"").expect("OUT_DIR can be written");
        std::fs::write(&interfaces, b"").expect("OUT_DIR can be written");
        std::fs::write(&with_stdio, b"").expect("OUT_DIR can be written");
        return;
    }
    let mut compiler = cc::Build::new().opt_level(2).debug(false).get_compiler();
    // zig builds Python wheels for an older glibc, but its linker does not know `-z initfirst`. This library does
    // not link with glibc, so the system's compiler is used.
    if compiler.path().to_string_lossy().contains("zig") {
        compiler = cc::Build::new().opt_level(2).debug(false).compiler("cc").get_compiler();
    }
    // Every recorded process maps the library, so these options reduce it to two mappings and few used pages; in
    // return its pointers stay writable. The linker gold does not know the first option, and some linkers do not
    // support -flto; without it, recording a call takes slightly longer. So sets of options are tried in turn.
    let compact = ["-Wl,-z,noseparate-code", "-Wl,-z,norelro"];
    let together = ["-flto", compact[0], compact[1]];
    let sources = sources("native");
    let is_made = [&together[..], &compact, &["-flto"], &[]]
        .iter()
        .any(|options| has_made(&compiler, &sources, &library, options));
    assert!(is_made, "native/ does not compile");
    let layers = self::sources("interfaces");
    assert!(has_made_interfaces(&compiler, &layers, &interfaces), "interfaces/ does not compile");
    let all = [layers, self::sources("interfaces/stdio")].concat();
    assert!(has_made_interfaces(&compiler, &all, &with_stdio), "interfaces/stdio/ does not compile");
}

/// Compiles the library for interfaces. It has no dependencies either: it looks up libc's functions when it is
/// loaded.
fn has_made_interfaces(compiler: &cc::Tool, sources: &[PathBuf], library: &Path) -> bool {
    let mut command: Command = compiler.to_command();
    command.args(["-shared", "-fPIC", "-O2", "-std=gnu11", "-ffreestanding", "-nostdlib"]);
    command.args([
        "-fvisibility=hidden",
        "-fno-stack-protector",
        "-fno-sanitize=undefined",
        "-Wall",
        "-Wextra",
    ]);
    command.args(["-Werror", "-Wl,-z,now", "-Wl,-z,noexecstack", "-Wl,-soname,libiodock_interfaces.so"]);
    command.args(sources).arg("-o").arg(library);
    command.status().expect("the C compiler runs").success()
}

/// Returns all source files of C and assembly in the folder.
fn sources(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder can be read");
    let all = entries.map(|entry| entry.expect("the folder can be read").path());
    let mut sources: Vec<_> =
        all.filter(|path| path.extension().is_some_and(|kind| kind == "c" || kind == "S")).collect();
    sources.sort();
    sources
}

fn has_made(compiler: &cc::Tool, sources: &[PathBuf], library: &Path, options: &[&str]) -> bool {
    let mut command: Command = compiler.to_command();
    command.args([
        "-shared",
        "-fPIC",
        "-O2",
        "-std=gnu11",
        "-ffreestanding",
        "-nostdlib",
        "-fvisibility=hidden",
    ]);
    // The code may use only integer registers, because the stub saves no others. It must not call any library, nor
    // use libc's state.
    command.args(["-mgeneral-regs-only", "-fno-stack-protector", "-fno-builtin", "-fcf-protection=none"]);
    command.args(["-fno-sanitize=undefined", "-fasynchronous-unwind-tables", "-ftls-model=initial-exec"]);
    if compiler.is_like_clang() {
        // If the target is named together with features, clang lets these override -mgeneral-regs-only.
        for feature in ["-x87", "-mmx", "-sse"] {
            command.args(["-Xclang", "-target-feature", "-Xclang", feature]);
        }
    } else {
        // gcc would turn loops into calls of memset.
        command.arg("-fno-tree-loop-distribute-patterns");
    }
    command.args([
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wl,-z,now",
        "-Wl,-z,noexecstack",
        "-Wl,-z,initfirst",
        "-Wl,--hash-style=gnu",
    ]);
    // Variables in the section .bss.rare must stay at the end, so data gets no sections of its own.
    command.arg("-fno-data-sections");
    command.args(["-Wl,-soname,libiodock_preload.so", "-Wl,--no-undefined", "-Wl,-z,max-page-size=4096"]);
    command.args(options).args(sources).arg("-o").arg(library);
    command.status().expect("the C compiler runs").success()
}
