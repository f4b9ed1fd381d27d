"""Names of the generated C: every one that stems from a user's name is made and judged here.

A name may become a member of a structure, a variable, a part of a macro or function, a file and a target of CMake. The
header is read by C and C++ compilers of any standard, after whatever headers of the standard library. So words of all
those languages, macros that stand without arguments, files of those libraries and CMake's own targets are avoided.
"""

import re
from collections.abc import Collection, Iterable

MAX_IDENTIFIER_LENGTH = 63
_KEYWORDS_OF_C = """
    alignas alignof asm auto bool break case char const constexpr continue default do double else enum extern false
    float for goto if inline int long nullptr register restrict return short signed sizeof static
    static_assert struct switch thread_local true typedef typeof typeof_unqual union unsigned void volatile while
"""
KEYWORDS_OF_C = frozenset(_KEYWORDS_OF_C.split())
_KEYWORDS_OF_CPP = """
    and and_eq bitand bitor catch char16_t char32_t char8_t class co_await co_return co_yield compl concept consteval
    constinit const_cast decltype delete dynamic_cast explicit export friend mutable namespace new noexcept not not_eq
    operator or or_eq private protected public reflexpr reinterpret_cast requires static_cast synchronized template
    this throw try typeid typename using virtual wchar_t xor xor_eq
"""
# What compilers define before any header, but for names that begin with an underscore.
_PREDEFINED = "i386 linux unix mips sparc sun vax PPC main"
_TYPES = """
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t size_t ptrdiff_t
"""
# Macros without arguments of the standard headers, as C libraries define them.
_MACROS = """
    complex imaginary I errno h_errno fd_set linux math_errhandling noreturn physadr quad sched_priority signgam
    stderr stdin stdout strtodf tzname unreachable
    EOF BIG_ENDIAN LITTLE_ENDIAN PDP_ENDIAN BYTE_ORDER BUFSIZ CSIGNAL FD_SETSIZE CPU_SETSIZE INFINITY NAN NULL NSIG
    NGREG NFDBITS NZERO MAXFLOAT MAX_CANON MAX_INPUT MB_CUR_MAX MB_LEN_MAX MINSIGSTKSZ ONCE_FLAG_INIT PIPE_BUF
    BITINT_MAXWIDTH CLK_TCK DECIMAL_DIG HAVE_INITFINI_ARRAY P_tmpdir RE_DUP_MAX WCONTINUED WEOF WEXITED WNOHANG
    WNOWAIT WSTOPPED WUNTRACED TIMER_ABSTIME TSS_DTOR_ITERATIONS
"""
_ERROR_NUMBERS = """
    E2BIG EACCES EADDRINUSE EADDRNOTAVAIL EADV EAFNOSUPPORT EAGAIN EALREADY EBADE EBADF EBADFD EBADMSG EBADR EBADRQC
    EBADSLT EBFONT EBUSY ECANCELED ECHILD ECHRNG ECOMM ECONNABORTED ECONNREFUSED ECONNRESET EDEADLK EDEADLOCK
    EDESTADDRREQ EDOM EDOTDOT EDQUOT EEXIST EFAULT EFBIG EFTYPE EHOSTDOWN EHOSTUNREACH EHWPOISON EIDRM EILSEQ
    EINPROGRESS EINTR EINVAL EIO EISCONN EISDIR EISNAM EKEYEXPIRED EKEYREJECTED EKEYREVOKED EL2HLT EL2NSYNC EL3HLT
    EL3RST ELIBACC ELIBBAD ELIBEXEC ELIBMAX ELIBSCN ELNRNG ELOOP EMEDIUMTYPE EMFILE EMLINK EMSGSIZE EMULTIHOP
    ENAMETOOLONG ENAVAIL ENETDOWN ENETRESET ENETUNREACH ENFILE ENOANO ENOBUFS ENOCSI ENODATA ENODEV ENOENT ENOEXEC
    ENOKEY ENOLCK ENOLINK ENOMEDIUM ENOMEM ENOMSG ENONET ENOPKG ENOPROTOOPT ENOSPC ENOSR ENOSTR ENOSYS ENOTBLK
    ENOTCONN ENOTDIR ENOTEMPTY ENOTNAM ENOTRECOVERABLE ENOTSOCK ENOTSUP ENOTTY ENOTUNIQ ENXIO EOPNOTSUPP EOVERFLOW
    EOWNERDEAD EPERM EPFNOSUPPORT EPIPE EPROTO EPROTONOSUPPORT EPROTOTYPE ERANGE EREMCHG EREMOTE EREMOTEIO ERESTART
    ERFKILL EROFS ESHUTDOWN ESOCKTNOSUPPORT ESPIPE ESRCH ESRMNT ESTALE ESTRPIPE ETIME ETIMEDOUT ETOOMANYREFS ETXTBSY
    EUCLEAN EUNATCH EUSERS EWOULDBLOCK EXDEV EXFULL
"""
_MACRO_FAMILIES = re.compile(
    r"U?INT\w*_C|(PRI|SCN)[a-zBX]\w*|\w+_(MAX|MIN|WIDTH|BIT|FILENO)|SNAN\w*|SIG[A-Z_]\w*|[FRWX]_OK"
    r"|F_(LOCK|TEST|TLOCK|ULOCK)|L_(INCR|SET|XTND|ctermid|cuserid|tmpnam)"
    r"|M_(E|LOG2_?E|LOG10E|LN2|LN10|LN2LO|LN2HI|PI|PI_2|PI_4|3PI_4|1_PI|2_PI|TWOPI|2_SQRTPI|SQRTPI|SQRT2|SQRT1_2|SQRT3"
    r"|IVLN10|INVLN2)\w*"
    r"|(FE|LC|ATOMIC|TIME|MATH|FP|SEEK|CLOCKS?|EXIT|HUGE)_[A-Z]\w*|(FLT|DBL|LDBL|DEC)[0-9]*X?_[A-Z]\w*"
    r"|(ADJ|BUS|CLD|CLONE|CLOSE_RANGE|FPE|ILL|ITIMER|MOD|NL|POLL|PTHREAD|REG|RENAME|SA|SCHED|SEGV|SEM|SI|SS)_[A-Z]\w*"
    r"|(STA|SYS|TRAP)_\w+|atomic_\w+|(si|sa|st|ifr|ifa|ifc|sigev|s6)_\w+"
)
# Files of C libraries and compilers that a header of the same name would stand before.
_HEADERS = """
    aio aliases alloca ar argp argz assert byteswap complex cpio crypt ctype devctl dirent dlfcn elf endian envlock envz
    err errno error execinfo fastmath fcntl features fenv float fmtmsg fnmatch fstab fts ftw gconv getopt glob grp
    gshadow iconv ieeefp ifaddrs inttypes iso646 langinfo lastlog libgen libintl limits link locale malloc math mcheck
    memory mntent monetary mqueue ndbm netdb newlib nl_types nss obstack paths picolibc poll printf pthread pty pwd
    reent regdef regex regexp resolv sched search semaphore setjmp sgtty shadow signal spawn stab stdalign stdarg
    stdatomic stdbit stdbool stdckdint stddef stdint stdio stdio_ext stdlib stdnoreturn string strings stropts syscall
    sysexits syslimits syslog tar termio termios tgmath threads thread_db time trace ttyent uchar ucontext ulimit
    unctrl unistd unwind utime utmp utmpx values wait wchar wctype wordexp
    altivec auto_ptr arm_acle arm_bf16 arm_cde arm_cmse arm_fp16 arm_mve arm_neon arm_sve binders cpuid immintrin
    intrin io direct dos malloc process windows
"""
# Types of models of these names would be called as functions and types that files of a bundle have for themselves.
_FRONTS = "await begin check end find needed"
# Targets and projects that CMake, CTest and CPack have themselves; names that Windows has no files of.
_OTHERS = """
    all all_build clean continuous default_target depend edit_cache experimental help install nightly package
    package_source preinstall rebuild_cache run_tests test zero_check
    con prn aux nul com1 com2 com3 com4 com5 com6 com7 com8 com9 lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 lpt7 lpt8 lpt9
"""
RESERVED = frozenset(
    word
    for words in (_KEYWORDS_OF_C, _KEYWORDS_OF_CPP, _PREDEFINED, _TYPES, _MACROS, _ERROR_NUMBERS)
    for word in words.split()
)
_NO_MODEL = frozenset(f"{_HEADERS} {_FRONTS} {_OTHERS}".split())


def c_identifier(text: str) -> str:
    """The text with every character that C identifiers cannot have replaced by an underscore."""
    name = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in text)
    return f"_{name}" if not name or name[0].isdigit() else name


def is_reserved(name: str) -> bool:
    """Whether compilers, or headers of the standard library, give an identifier a meaning of its own."""
    return name in RESERVED or name.startswith("__") or _MACRO_FAMILIES.fullmatch(name) is not None


def is_c_name(name: str) -> bool:
    """Whether a name can stand in C as it is."""
    return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is not None and not is_reserved(name)


def c_name(text: str, fallback: str) -> str:
    """A readable name for a member or variable: other characters become `_`, reserved words get one at their end.

    Args:
        text: What the name stems from.
        fallback: The name of a text without a usable character, and the front of one that begins with a digit.
    """
    name = re.sub(r"[^0-9A-Za-z]+", "_", text).strip("_")[:MAX_IDENTIFIER_LENGTH].rstrip("_")
    if not name:
        return fallback
    if name[0].isdigit():
        name = f"{fallback}_{name}"[:MAX_IDENTIFIER_LENGTH]
    return f"{name}_" if is_reserved(name) else name


def model_name(text: str) -> str:
    """A name for a model, which is also that of files, of a target of CMake, and in capitals of macros."""
    name = c_name(text, "model")
    return f"{name}_" if name.lower() in _NO_MODEL else name


def unique_names(names: Iterable[str], taken: Collection[str]) -> dict[str, str]:
    """A C name for each name: itself where it can be, else made readable; no two alike, none that is taken."""
    used = set(taken)
    return {name: unique_c_name(name, used) for name in names}


def unique_c_name(name: str, taken: set[str]) -> str:
    """As `unique_name`, of the name itself where it can be one in C, else of what makes it readable."""
    return unique_name(name if is_c_name(name) else c_name(name, "name"), taken)


def unique_name(name: str, taken: set[str], first: int = 1, between: str = "_") -> str:
    """The name, or with the first number from `first` on that is free if it is taken; it is taken from now on."""
    chosen, number = name, first
    while chosen in taken:
        chosen, number = f"{name}{between}{number}", number + 1
    taken.add(chosen)
    return chosen
