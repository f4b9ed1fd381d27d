"""Every function that is left runs at one place: calls are replaced by what they call, and arms and bodies are copied.

What is known of control is decided here: a condition that is constant, or whose arms are one function, a loop of one
turn, and operators without results, which have no effect. Constants that arms and bodies are given become theirs, so
that weights may be passed to functions. Lowering then meets conditionals and loops, each with functions that nothing
else runs.

Names are unique in the module before and after. A function that is met at one place only keeps the names of its values;
else those of each place begin with the name of the first result there: `%y/sum` of `%y = call(...)`. What becomes a
result of a call has the name that it has there.
"""

from collections import Counter
from dataclasses import dataclass, field, replace

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.diagnostics import compile_error
from bytewright.ir.where import NOWHERE, Where
from bytewright.ops.control import Call, CondIf, Loop
from bytewright.ops.data import Identity, Reshape

# What an entry may become, and how deep its conditionals and loops may nest: C compilers take 127 levels of blocks.
MAX_OPERATORS = 1 << 20
MAX_NESTING = 100


def inline_calls(module: ir.Module) -> ir.Module:
    """Returns the module with the functions that the model runs, each of which a conditional or a loop runs, once.

    Raises:
        CompileError: BW118 if the model becomes too large, BW119 if it nests too deeply.
    """
    if len(module.functions) == 1:
        return module
    _require_limits(module)
    result = _inlined(module)
    # What is decided in a body may show that it gives a constant on as it was; one function alone has none to decide.
    while len(result.functions) > 1 and result != module:
        module, result = result, _inlined(result)
    return result


def _inlined(module: ir.Module) -> ir.Module:
    inlining = _Inlining(module)
    done: list[ir.Function] = []
    while len(done) < len(inlining.copies):
        done.append(inlining.function(inlining.copies[len(done)]))
    return replace(module, functions=tuple(reversed(done)))


def _require_limits(module: ir.Module) -> None:
    """Operators, and levels of conditionals and loops, with every function in its places."""
    num_operators: dict[str, int] = {}
    num_levels: dict[str, int] = {}
    for function in module.functions:
        operators, levels = 0, 0
        for node in function.nodes:
            operators += 1
            if isinstance(node.operation, ir.ControlOperation):
                callees = node.operation.callees
                operators += sum(num_operators[name] for name in callees)
                inside = not isinstance(node.operation, Call)
                levels = max(levels, *(num_levels[name] + inside for name in callees))
        num_operators[function.name], num_levels[function.name] = operators, levels
    name = module.graph.name
    if num_operators[name] > MAX_OPERATORS:
        count = str(num_operators[name]) if num_operators[name] < 10**12 else "more than 10^12"
        raise compile_error(
            "BW118",
            f"with every function in its places the model has {count} operators, {MAX_OPERATORS} are the most",
            help="a loop in place of functions that are called again and again",
            where=module.name,
        )
    if num_levels[name] > MAX_NESTING:
        raise compile_error(
            "BW119",
            f"conditionals and loops lie {num_levels[name]} levels inside each other, {MAX_NESTING} are the most",
            help="write conditionals one after the other, not one in the arm of another",
            where=module.name,
        )


def _num_places(module: ir.Module) -> Counter[str]:
    """At how many places each function is met: 1, or more than that."""
    places = Counter({module.graph.name: 1})
    for function in reversed(module.functions):
        for node in function.nodes:
            if isinstance(node.operation, ir.ControlOperation):
                for name in dict.fromkeys(node.operation.callees):
                    places[name] = min(2, places[name] + places[function.name])
    return places


def _passed_through(module: ir.Module) -> dict[str, tuple[int | None, ...]]:
    """For each result of each function the parameter that it is, by its number; None if it is computed."""
    found: dict[str, tuple[int | None, ...]] = {}
    for function in module.functions:
        origin: dict[str, int | None] = {value.name: i for i, value in enumerate(function.parameters)}
        for node in function.nodes:
            match node.operation:
                case Call(callee=callee):
                    passed = found[callee]
                case Loop(body=body, num_iterations=count):
                    passed = [i if i == p or count == 0 else None for i, p in enumerate(found[body])]
                case _:
                    continue
            for value, number in zip(node.outputs, passed, strict=True):
                origin[value.name] = None if number is None else origin.get(node.inputs[number])
        found[function.name] = tuple(origin.get(name) for name in function.results)
    return found


@dataclass(frozen=True, slots=True)
class _Copy:
    """A function at its one place, or the first function of the module.

    Attributes:
        name: Its name there.
        prefix: What the names of its values begin with; None if they stay.
        given: The values that its parameters are there; None of the module's first function.
        results: The values that its results become there, None for one that is left out; None of the module's first
            function.
    """

    function: ir.Function
    name: str
    prefix: str | None
    given: tuple[str, ...] | None = None
    results: tuple[ir.Value | None, ...] | None = None


@dataclass(slots=True)
class _Frame:
    """A function that is being written into another.

    Attributes:
        names: What its values are called there, as far as that is known.
        wanted: Those of its values that get the name and the place of a result of `call`.
        call: The operator, of the function around it, that it stands for.
    """

    function: ir.Function
    prefix: str | None
    names: dict[str, str] = field(default_factory=dict[str, str])
    wanted: dict[str, ir.Value] = field(default_factory=dict[str, ir.Value])
    call: ir.Node | None = None
    position: int = 0

    def name(self, name: str) -> str:
        """What a value, or a constant, is called where the function is written."""
        return self.names.get(name, name)


class _Inlining:
    """One run of the pass."""

    def __init__(self, module: ir.Module) -> None:
        self.functions = {function.name: function for function in module.functions}
        self.constants = {constant.name: constant.data.array for constant in module.constants}
        self.places = _num_places(module)
        self.passed = _passed_through(module)
        self.copies = [_Copy(module.graph, module.graph.name, None)]
        self.nodes: list[ir.Node] = []  # of the function that is being written
        self.types = module.constant_types
        self.taken = set(module.graph_types)
        self.function_names = set(self.functions)
        self.reshaped: dict[str, ir.Array] = {}  # values that are constants under another shape

    def function(self, copy: _Copy) -> ir.Function:
        """The function of a place, with all that it calls."""
        self.nodes = []
        frame = _Frame(copy.function, copy.prefix)
        parameters = self._parameters(frame, copy)
        stack = [frame]
        while stack:
            self._proceed(stack)
        results = [frame.name(name) for name in copy.function.results]
        if copy.results is not None:
            pairs = zip(results, copy.results, strict=True)
            results = [self._result(name, value) for name, value in pairs if value is not None]
        return ir.Function(copy.name, parameters, tuple(self.nodes), tuple(results))

    def _result(self, name: str, value: ir.Value) -> str:
        """What a function gives for a value of its place: copied if it may not lie where that does."""
        if name in self.constants or _fits(value.type, self.types[name]):
            return name
        return self._copied(name, replace(value, name=self._unique(f"{value.name}/placed")), NOWHERE)

    def _parameters(self, frame: _Frame, copy: _Copy) -> tuple[ir.Value, ...]:
        """Those that are no constants at the place. One that may not lie where the operand does is copied."""
        found: list[ir.Value] = []
        for number, parameter in enumerate(copy.function.parameters):
            given = None if copy.given is None else copy.given[number]
            if given in self.constants:
                frame.names[parameter.name] = given
                continue
            value = self._value(frame, parameter)
            if given is not None and not _fits(self.types[given], value.type):
                own = ir.Value(self._unique(f"{value.name}/given"), self.types[given])
                found.append(self._defined(own))
                self._copied(own.name, value, NOWHERE)
            else:
                found.append(self._defined(value))
        return tuple(found)

    def _proceed(self, stack: list[_Frame]) -> None:
        """Writes operators up to the next call, or to the end of the function."""
        frame = stack[-1]
        nodes = frame.function.nodes
        while frame.position < len(nodes):
            node = nodes[frame.position]
            frame.position += 1
            node = replace(node, inputs=tuple(frame.name(name) for name in node.inputs))
            called = self._called(node)
            if called is not None:
                stack.append(self._frame_of(called, node, frame))
                return
            self._write(frame, node)
        stack.pop()
        if stack and frame.call is not None:
            caller = stack[-1]
            for value, result in zip(frame.call.outputs, frame.function.results, strict=True):
                self._alias(caller, value, frame.name(result), frame.call.where)

    def _called(self, node: ir.Node) -> tuple[str, tuple[str, ...]] | None:
        """The function that an operator runs just once, whatever the model is given, and on what."""
        match node.operation:
            case Call(callee=callee) if node.outputs:
                return callee, node.inputs
            case CondIf(then_branch=then, else_branch=otherwise) if node.outputs:
                condition, *arguments = node.inputs
                known = self._known(condition)
                if known is not None:
                    otherwise = then = then if known.item() else otherwise
                return (then, tuple(arguments)) if then == otherwise else None
            case Loop(body=body, num_iterations=1) if node.outputs:
                return body, node.inputs
            case _:
                return None

    def _frame_of(self, called: tuple[str, tuple[str, ...]], node: ir.Node, caller: _Frame) -> _Frame:
        """A function in place of its call: what it computes has the names of the call's results."""
        function = self.functions[called[0]]
        prefix = None if self.places[function.name] == 1 else self._value(caller, node.outputs[0]).name
        frame = _Frame(function, prefix, call=node)
        for parameter, given in zip(function.parameters, called[1], strict=True):
            if given in self.constants or _fits(self.types[given], parameter.type):
                frame.names[parameter.name] = given
            else:
                self._copied(given, self._value(frame, parameter), node.where)
        computed = {value.name for inner in function.nodes for value in inner.outputs}
        for value, result in zip(node.outputs, function.results, strict=True):
            if result in computed and result not in frame.wanted:
                frame.wanted[result] = self._value(caller, value)
        return frame

    def _write(self, frame: _Frame, node: ir.Node) -> None:
        """One operator that is no call; conditionals and loops get copies of their functions."""
        match node.operation:
            case ir.ControlOperation() if not node.outputs:
                pass
            case Loop(num_iterations=0):
                for value, name in zip(node.outputs, node.inputs, strict=True):
                    self._alias(frame, value, name, node.where)
            case Loop():
                self._write_loop(frame, node, node.operation)
            case CondIf():
                self._write_conditional(frame, node, node.operation)
            case _:
                known = self._known(node.inputs[0]) if isinstance(node.operation, Reshape) else None
                outputs = tuple(self._defined(self._value(frame, value)) for value in node.outputs)
                self.nodes.append(replace(node, outputs=outputs))
                if known is not None:
                    self.reshaped[outputs[0].name] = known

    def _write_conditional(self, frame: _Frame, node: ir.Node, operation: CondIf) -> None:
        """Arms that are given constants have them as their own."""
        outputs = tuple(self._defined(self._value(frame, value)) for value in node.outputs)
        condition, *given = node.inputs
        then, otherwise = (
            self._copy(name, outputs, tuple(given), outputs)
            for name in (operation.then_branch, operation.else_branch)
        )
        kept = tuple(name for name in given if name not in self.constants)
        self.nodes.append(
            replace(node, operation=CondIf(then, otherwise), inputs=(condition, *kept), outputs=outputs)
        )

    def _write_loop(self, frame: _Frame, node: ir.Node, operation: Loop) -> None:
        """A constant that every turn gives on as it was is the body's own, and carried no more."""
        passed = self.passed[operation.body]
        outputs: list[ir.Value | None] = []
        given: list[str] = []
        for number, (value, name) in enumerate(zip(node.outputs, node.inputs, strict=True)):
            if name in self.constants and passed[number] == number:
                self._alias(frame, value, name, node.where)
                outputs.append(None)
                given.append(name)
            else:
                carried = self._defined(self._value(frame, value))
                outputs.append(carried)
                given.append(carried.name)
        kept = tuple(value for value in outputs if value is not None)
        if kept:
            body = self._copy(operation.body, kept, tuple(given), tuple(outputs))
            inputs = tuple(n for n, value in zip(node.inputs, outputs, strict=True) if value is not None)
            loop = Loop(body, operation.num_iterations)
            self.nodes.append(replace(node, operation=loop, inputs=inputs, outputs=kept))

    def _copy(
        self,
        name: str,
        place: tuple[ir.Value, ...],
        given: tuple[str, ...],
        results: tuple[ir.Value | None, ...],
    ) -> str:
        """Asks for a function at a place, which has the name of its first result; returns what it is called there."""
        prefix = None
        own = name
        if self.places[name] > 1:
            prefix = place[0].name
            own = unique_name(f"{prefix}/{name}", self.function_names)
        self.copies.append(_Copy(self.functions[name], own, prefix, given, results))
        return own

    # Names

    def _unique(self, name: str) -> str:
        return unique_name(name, self.taken)

    def _known(self, name: str) -> ir.Array | None:
        """The values of a constant, under whatever shape; of one that is not, None."""
        found = self.constants.get(name)
        return self.reshaped.get(name) if found is None else found

    def _value(self, frame: _Frame, value: ir.Value) -> ir.Value:
        """A value of a frame's function as it is where the function is written."""
        wanted = frame.wanted.get(value.name)
        if wanted is not None:
            place = _joined(wanted.type.place, value.type.place)
            if place is not None:
                frame.names[value.name] = wanted.name
                return replace(wanted, type=replace(wanted.type, place=place))
            del frame.wanted[value.name]
        if value.name not in frame.names:
            is_kept = frame.prefix is None
            frame.names[value.name] = value.name if is_kept else self._unique(f"{frame.prefix}/{value.name}")
        return replace(value, name=frame.names[value.name])

    def _defined(self, value: ir.Value) -> ir.Value:
        self.types[value.name] = value.type
        return value

    def _alias(self, frame: _Frame, value: ir.Value, name: str, where: Where) -> None:
        """A value of a frame's function is another one: under its name, or a copy if it may not lie where that does."""
        own = self._value(frame, value)
        if own.name == name:
            return
        if name in self.constants or _fits(self.types[name], own.type):
            frame.wanted.pop(value.name, None)
            frame.names[value.name] = name
        else:
            self._copied(name, own, where)

    def _copied(self, name: str, value: ir.Value, where: Where) -> str:
        self.nodes.append(ir.Node(Identity(), (name,), (self._defined(value),), where))
        return value.name


def _fits(inner: ir.TensorType, outer: ir.TensorType) -> bool:
    """Whether what is at the place of `inner` is as well at that of `outer`."""
    first, second = inner.place, outer.place
    return second.device in (None, first.device) and ir.is_within(first.scope, second.scope)


def _joined(first: ir.VirtualDevice, second: ir.VirtualDevice) -> ir.VirtualDevice | None:
    """The place that is both; None if there is none."""
    try:
        return ir.join_places(first, second)
    except ValueError:
        return None
