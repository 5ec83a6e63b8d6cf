"""The usual Python pipeline, as a peer: one OpenCV capture thread a camera with a slot for its newest frame, one loop
that runs the model. Prints one JSON line for each frame it looked at; ends with its standard input.

    python worker_peer.py litert|tflite_runtime|roboflow MODEL MAX_FPS MIN_SCORE CAMERA=URL…

With `roboflow`, Roboflow's InferencePipeline brings the frames in place of the threads here.
"""
import json
import os
import sys
import threading
import time
import warnings
import zipfile

sys.dont_write_bytecode = True  # the checkout stays as it was
os.environ["OPENCV_FFMPEG_CAPTURE_OPTIONS"] = "rtsp_transport;tcp"

import cv2  # noqa: E402
import numpy  # noqa: E402

import worker_stamp  # noqa: E402


class Model:
    def __init__(self, runtime, path, min_score):
        if runtime == "tflite_runtime":
            from tflite_runtime.interpreter import Interpreter
        else:
            from ai_edge_litert.interpreter import Interpreter
        with zipfile.ZipFile(path) as packed:
            self.labels = packed.read(packed.namelist()[0]).decode().splitlines()
        self.interpreter = Interpreter(str(path), num_threads=1)
        self.interpreter.allocate_tensors()
        self.input = self.interpreter.get_input_details()[0]
        # Boxes, classes, scores, count: the order of the tensors' names, not of the list.
        details = sorted(self.interpreter.get_output_details(), key=lambda each: each["name"], reverse=True)
        self.outputs = [each["index"] for each in details]
        self.min_score = min_score

    def detect(self, frame):
        height, width = self.input["shape"][1:3]
        picture = cv2.cvtColor(cv2.resize(frame, (int(width), int(height))), cv2.COLOR_BGR2RGB)
        self.interpreter.set_tensor(self.input["index"], picture[numpy.newaxis])
        self.interpreter.invoke()
        boxes, classes, scores = (self.interpreter.get_tensor(index)[0] for index in self.outputs[:3])
        rows, columns = frame.shape[:2]
        return [{"class": self.labels[int(label)], "conf": float(score),
                 "bbox_xyxy": [float(x1 * columns), float(y1 * rows), float(x2 * columns), float(y2 * rows)]}
                for (y1, x1, y2, x2), label, score in zip(boxes, classes, scores) if score >= self.min_score]


class Capture(threading.Thread):
    """Reads all frames and offers the newest, at most `max_fps` a second."""

    def __init__(self, name, url, max_fps, fresh):
        super().__init__(daemon=True)
        self.camera, self.url, self.interval, self.fresh = name, url, 1 / max_fps, fresh
        self.slot = None

    def run(self):
        stream = cv2.VideoCapture(self.url, cv2.CAP_FFMPEG)
        due = 0
        while True:
            good, frame = stream.read()
            if not good:
                print(f"{self.camera} ended", file=sys.stderr)
                os._exit(1)
            now = time.time()
            if now + self.interval / 4 < due:
                continue
            due = max(due + self.interval, now)
            with self.fresh:
                self.slot = (now, frame)
                self.fresh.notify()

    def take(self):
        taken, self.slot = self.slot, None
        return taken


def stamped_number(frame):
    """The number that a simulated camera painted into the corner of its frame."""
    cells = frame[:16, :176, 1].reshape(2, 8, 22, 8)[:, 2:6, :, 2:6].mean(axis=(1, 3)) >= 128
    return worker_stamp.number_of(cells.ravel())


def tell(camera, ts, frame, found):
    event = {"camera_uuid": camera, "ts": ts, "number": stamped_number(frame), "detections": found}
    print(json.dumps(event), flush=True)


def run_threads(model, cameras, max_fps):
    fresh = threading.Condition()
    captures = [Capture(name, url, max_fps, fresh) for name, url in cameras]
    for capture in captures:
        capture.start()
    while True:
        with fresh:
            fresh.wait_for(lambda: any(capture.slot for capture in captures))
            works = [(capture.camera, *capture.take()) for capture in captures if capture.slot]
        for camera, ts, frame in works:
            tell(camera, ts, frame, model.detect(frame))


def run_roboflow(model, cameras, max_fps):
    from inference import InferencePipeline
    warnings.simplefilter("ignore")  # one for each frame would be counted as work

    def told(found, frames):
        for each, frame in zip(found, frames):
            if frame is not None:
                tell(cameras[frame.source_id][0], frame.frame_timestamp.timestamp(), frame.image, each)

    pipeline = InferencePipeline.init_with_custom_logic(
        video_reference=[url for _, url in cameras], max_fps=max_fps, on_prediction=told,
        on_video_frame=lambda frames: [model.detect(frame.image) for frame in frames])
    pipeline.start()
    pipeline.join()


def main():
    runtime, path, max_fps, min_score = sys.argv[1:5]
    cv2.setNumThreads(1)
    model = Model(runtime, path, float(min_score))
    cameras = [each.split("=", 1) for each in sys.argv[5:]]
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    (run_roboflow if runtime == "roboflow" else run_threads)(model, cameras, float(max_fps))


main()
