from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DistributeOptions(_message.Message):
    __slots__ = ("auto_shard_policy",)
    class AutoShardPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        AUTO: _ClassVar[DistributeOptions.AutoShardPolicy]
        FILE: _ClassVar[DistributeOptions.AutoShardPolicy]
        DATA: _ClassVar[DistributeOptions.AutoShardPolicy]
        HINT: _ClassVar[DistributeOptions.AutoShardPolicy]
        OFF: _ClassVar[DistributeOptions.AutoShardPolicy]
    AUTO: DistributeOptions.AutoShardPolicy
    FILE: DistributeOptions.AutoShardPolicy
    DATA: DistributeOptions.AutoShardPolicy
    HINT: DistributeOptions.AutoShardPolicy
    OFF: DistributeOptions.AutoShardPolicy
    AUTO_SHARD_POLICY_FIELD_NUMBER: _ClassVar[int]
    auto_shard_policy: DistributeOptions.AutoShardPolicy
    def __init__(self, auto_shard_policy: _Optional[_Union[DistributeOptions.AutoShardPolicy, str]] = ...) -> None: ...

class OptimizationOptions(_message.Message):
    __slots__ = ("apply_default_optimizations", "shuffle_and_repeat_fusion")
    APPLY_DEFAULT_OPTIMIZATIONS_FIELD_NUMBER: _ClassVar[int]
    SHUFFLE_AND_REPEAT_FUSION_FIELD_NUMBER: _ClassVar[int]
    apply_default_optimizations: bool
    shuffle_and_repeat_fusion: bool
    def __init__(self, apply_default_optimizations: bool = ..., shuffle_and_repeat_fusion: bool = ...) -> None: ...

class Options(_message.Message):
    __slots__ = ("distribute_options", "optimization_options")
    DISTRIBUTE_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    OPTIMIZATION_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    distribute_options: DistributeOptions
    optimization_options: OptimizationOptions
    def __init__(self, distribute_options: _Optional[_Union[DistributeOptions, _Mapping]] = ..., optimization_options: _Optional[_Union[OptimizationOptions, _Mapping]] = ...) -> None: ...
