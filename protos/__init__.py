"""The wire messages: all other code uses `import protos as pb`, then `pb.GraphDef`.

The field numbers are TensorFlow's. The protobuf package is named `runstep`, not `tensorflow`, so
that TensorFlow itself can be imported in the same process. Serving messages are under `pb.serving`
and `pb.server_config`, those of the Open Inference Protocol under `pb.inference`, models for an
engine under `pb.onnx`.
"""

from protos import inference_protocol_pb2 as inference  # noqa: F401
from protos import model_server_config_pb2 as server_config  # noqa: F401
from protos import onnx_model_pb2 as onnx  # noqa: F401
from protos import serving_pb2 as serving  # noqa: F401
from protos.checkpoint_pb2 import *  # noqa: F403 - the generated module is the list of names
from protos.config_pb2 import *  # noqa: F403
from protos.dataset_options_pb2 import *  # noqa: F403
from protos.error_codes_pb2 import *  # noqa: F403
from protos.example_pb2 import *  # noqa: F403
from protos.graph_pb2 import *  # noqa: F403
from protos.master_pb2 import *  # noqa: F403
from protos.quantization_pb2 import *  # noqa: F403
from protos.saved_model_pb2 import *  # noqa: F403
from protos.snapshot_pb2 import *  # noqa: F403
from protos.step_stats_pb2 import *  # noqa: F403
from protos.summary_pb2 import *  # noqa: F403
from protos.tensor_pb2 import *  # noqa: F403
from protos.unpack import unpack_any as unpack_any
from protos.xla_pb2 import *  # noqa: F403
