"""The shapes of torch's own that stand in signatures here; what is under their names, it types not.

A parameter group holds tensors, numbers, words and sets, and users add entries of their own; a
state holds tensors and numbers; a loader yields what its dataset makes. Torch calls all of it Any.
"""

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any, TypeAlias

from torch import Tensor
from torch.optim.optimizer import ParamsT

#: What the constructor of an optimizer takes first.
Params: TypeAlias = ParamsT

#: A parameter group, or a copy of one with its options as they are in a step.
Group: TypeAlias = dict[str, Any]
#: The same where it is only read.
Options: TypeAlias = Mapping[str, Any]
#: What an optimizer keeps of one parameter.
State: TypeAlias = MutableMapping[str, Any]
#: What `state_dict` returns and `load_state_dict` takes.
Packed: TypeAlias = dict[str, Any]
#: What a loader yields; what a network makes of it.
Batch: TypeAlias = Any
#: What evaluates the loss; what it returns, a step returns.
Closure: TypeAlias = Callable[[], Any]
#: The loss of (output, target).
LossFunction: TypeAlias = Callable[[Any, Any], Tensor]
#: What compiled lists must know of a tensor beside its addresses, in the order of the kernels.
Numbers: TypeAlias = Sequence[float]
#: The processes that share a tensor, torch.distributed's; None if there are none others.
Processes: TypeAlias = Any
