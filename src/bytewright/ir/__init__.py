"""The two intermediate representations, graph and PrimFunc: `from bytewright import ir` names every node."""

# pyright: reportUnusedImport=false

from bytewright.ir.address import (
    extent_expr,
    flat_index,
    has_constant_size,
    num_elements,
    region_index,
    size_bytes,
    storage_shape,
)
from bytewright.ir.border import Io, allocates_border, border_buffers, border_of, border_ports
from bytewright.ir.data import TensorData
from bytewright.ir.expr import (
    FALSE,
    TRUE,
    Binary,
    BinaryOperator,
    Buffer,
    Cast,
    Const,
    Expr,
    Load,
    RingRows,
    ScalarCall,
    ScalarFunction,
    Select,
    Var,
    both,
    cast,
    clamp,
    const,
    either,
    maximum,
    minimum,
    select,
)
from bytewright.ir.graph import Array, Constant, Function, Node, Operation, Quantization, Value, value_types
from bytewright.ir.module import ConstantBuffer, Module, Port, SourceTensor
from bytewright.ir.prim import (
    Access,
    Allocate,
    BufferParameter,
    Call,
    CallKind,
    External,
    For,
    If,
    Let,
    LoopKind,
    Parameter,
    ParameterRole,
    PrimFunc,
    Region,
    ScalarParameter,
    Seq,
    Statement,
    Store,
    View,
)
from bytewright.ir.scope import (
    GLOBAL,
    LOCAL,
    STACK,
    STACK_TAG,
    WORKSPACE,
    WORKSPACE_TAG,
    Rank,
    Scope,
    is_local,
    is_on_stack,
    is_within,
    join_scopes,
    lowering_pass,
    parse_scope,
    pool_scope,
)
from bytewright.ir.storage import (
    CANDIDATE_POOLS,
    POOL_OFFSET,
    UNDECIDED,
    Annotations,
    Border,
    Storage,
    from_annotations,
    misused,
    to_annotations,
)
from bytewright.ir.types import (
    MAX_ELEMENTS,
    DType,
    Extent,
    Symbol,
    TensorType,
    VirtualDevice,
    format_shape,
    upper_bound,
)
