"""What a kernel computes with, and the memory that this takes of a procedure."""

from __future__ import annotations

from dataclasses import dataclass

from graph2vid.learn.cuda.cuda_graphs import Layout
from graph2vid.learn.cuda.cuda_nodes import LANES, nodes_of
from graph2vid.learn.cuda.cuda_waiving import waiving_of

CHUNK = 32  # clips whose costs are staged at a time; as in common.cuh
WIDE_PARTS = 5  # numbers of a state with many arcs; as in in_memory.cu
WIDTHS = (2, 3, 4, 6, 8, 12, 16, 24)  # states per ideal that kernels are compiled for
MANY_GRADIENTS = 6144  # of the states of a block, that wait to be added up
FEW_BYTES = 24576  # of columns that are read ahead
FORWARD_BYTES = 34816  # of columns that wait to be written
MOST_ALIKE = 128  # ideals of a procedure whose lanes do alike: a warp for each scheduler of a multiprocessor


@dataclass(frozen=True)
class Numbers:
    """What a kernel computes with: bytes of a number, how minima are smoothed, and whether steps may be left out."""

    bytes: int
    smoothmin: bool = False
    contiguous: bool = True
    skips: bool = False

    @property
    def parts(self) -> int:
        """Numbers that others need of an ideal: where sets of states are averaged as a whole, two."""
        return 2 if self.smoothmin and not self.contiguous else 1

    @property
    def kept(self) -> int:
        """Numbers that the kernels in registers keep of an ideal."""
        return 2 if self.smoothmin and not self.slopes else 1

    @property
    def each(self) -> int:
        """Numbers that they keep of a state."""
        return 2 if self.slopes else 1

    @property
    def node_bytes(self) -> int:
        """Bytes of each number that they keep of a node: a share, two halves, or values."""
        return 2 if self.shares else self.bytes

    @property
    def shares(self) -> bool:
        """Whether the kernels in registers keep how gradients pass, in half precision, in place of values."""
        return self.bytes == 4 and self.contiguous and not self.smoothmin

    @property
    def slopes(self) -> bool:
        """Whether they do so with smoothmin."""
        return self.bytes == 4 and self.smoothmin and not self.contiguous and self.skips

    @property
    def passes(self) -> bool:
        """Whether they keep no values."""
        return self.shares or self.slopes

    @property
    def told(self) -> int:
        """Numbers that states read backward of the ideal that they end in."""
        return 2 if self.slopes else 4 if self.smoothmin else 1 if self.shares else 2

    def plenty(self, layout: Layout, videos: int) -> bool:
        """Whether shared memory is no matter: with skip costs, room for another block is worth more than anything."""
        return not self.skips or videos * layout.ideals <= MOST_ALIKE

    def together(self, layout: Layout, videos: int) -> int:
        """Return the clips whose gradients are added up at a time; with skip costs lanes are at different ones."""
        most = 0 if self.skips else MANY_GRADIENTS
        return next(clips for clips in (4, 2, 1) if clips == 1 or clips * videos * layout.states <= most)

    def stages(self, kernel: str, layout: Layout, videos: int) -> int:
        """Return how many columns are read ahead, or wait to be written."""
        column = self.pack_column(layout, videos) * self.bytes
        if not self.plenty(layout, videos):
            return 4 if kernel == "forward" else 2
        if kernel == "forward":
            return next(stages for stages in (8, 4) if stages == 4 or stages * column <= FORWARD_BYTES)
        return next(stages for stages in (16, 8, 4) if stages == 4 or stages * column <= FEW_BYTES)

    def most(self, layout: Layout) -> int:
        """Return no less than the numbers of one column of the table of a video, wherever its states are."""
        return self.each * layout.states + 2 * (layout.ideals + layout.arcs) + 16

    def pack_column(self, layout: Layout, videos: int, *, in_registers: bool = True) -> int:
        """Return the numbers of one column of a pack of videos, in pieces of 16 bytes; the last belongs to no one."""
        parts = [videos * self.each * layout.states, videos * self.kept * layout.ideals]
        if self.skips and in_registers:
            nodes = nodes_of(layout).kept(videos, width_of("forward", layout), self.shares)
            each = 1 if self.slopes else self.parts
            parts += [-(-each * up(nodes + 3, 4) * self.node_bytes // self.bytes)]  # and three that are none
        elif self.skips:  # the values of ideals before the clip, too, and those of roots
            parts = [layout.states, 2 * layout.ideals, layout.roots]
        return sum(up(part, 4) for part in parts) + 4

    def told_forward(self, layout: Layout, videos: int) -> int:
        """Return the numbers that lanes tell one another forward: of ideals, nobody and nodes."""
        ideals = videos * layout.ideals + 1
        if not self.skips:
            return self.parts * ideals
        nodes = nodes_of(layout).told(videos, width_of("forward", layout))
        return self.parts * (up(ideals + 1, 4) + up(nodes + 1, 4))

    def gradients(self, layout: Layout, videos: int) -> int:
        """Return the gradients of the states of a pack that are added up, in pieces of four."""
        return videos * (nodes_of(layout).gradients if self.skips else layout.gradients)

    def farthest(self, kernel: str, layout: Layout, videos: int, width: int) -> int:
        """Return the largest place, in bytes, that has to fit into 16 bits where steps may be left out."""
        nodes = nodes_of(layout)
        places = [(nodes.kept(videos, width_of("forward", layout), self.shares) + 3) * self.node_bytes]
        if kernel == "forward":
            places.append(self.told_forward(layout, videos) // self.parts * self.bytes)
        else:
            places.append((nodes.places(videos, width)[1] + 1) * self.parts * self.bytes)
        if self.passes:  # two of them may be in one register
            places += [self.pack_column(layout, videos) * self.bytes, (self.gradients(layout, videos) + 1) * self.bytes]
        return max(places)

    def in_flight(self, layout: Layout, width: int) -> int:
        """Return the numbers that lanes have told one another between two parts of a video, in either direction."""
        if not self.skips:
            return 0
        forward = up(self.told_forward(layout, 1), 4) + (1 if self.passes else 2) * self.pack_column(layout, 1)
        back = up(self.told * (layout.ideals + 1), 4) + self.parts * (nodes_of(layout).places(1, width)[1] + 1)
        means = up(layout.ideals, 4) if self.slopes else 0
        return means + max(forward, up(back, 4))

    def waiving(self, layout: Layout) -> int:
        """Return the numbers of a video's gradients of what is waived."""
        return 0 if layout.waivers is None else layout.arcs + layout.ideals

    def working(self, kernel: str, layout: Layout) -> int:
        """Return the numbers that ideals and states tell one another."""
        ideals = 2 * self.parts * (layout.ideals + 1)
        states = 2 * self.parts * (layout.arcs + 1) if kernel == "backward" else 0
        if layout.waivers is None:
            return ideals + states
        return ideals + states + len(layout.waivers.sets) + WIDE_PARTS * len(layout.waivers.wide)

    def pack_bytes(self, kernel: str, layout: Layout, videos: int, width: int, gradient: bool) -> int:
        """Return the bytes of shared memory of a block of the kernels in registers."""
        ideals = videos * layout.ideals + 1
        column = self.pack_column(layout, videos)
        chunks = self.chunks(kernel, layout)
        if kernel == "forward":
            working = up(2 * self.told_forward(layout, videos), 4)
            working += self.stages(kernel, layout, videos) * column if gradient else 0
        else:
            stages, together = self.stages(kernel, layout, videos), self.together(layout, videos)
            spaced = up(self.gradients(layout, videos) + 1, 32) + 32 // together
            told = up(self.told * ideals, 4)
            if self.skips:
                told += up(self.parts * (nodes_of(layout).places(videos, width)[1] + 1), 4)
                chunks *= 1 if self.passes else 2  # of sums, and of costs
            working = stages * (8 // self.bytes + column) + 2 * told + 2 * together * spaced
        staged = up(((videos * (layout.steps + 1)) | 1) * CHUNK * self.bytes, 16) * chunks
        shared = up(videos * (16 + self.bytes), 16) + staged + working * self.bytes
        return shared + self.waiving_bytes(kernel, layout, videos, in_registers=True)

    def chunks(self, kernel: str, layout: Layout) -> int:
        """Return the chunks of costs, or of sums, that the kernels in registers have at a time.

        With skip costs lanes are as many clips behind as their ideal has steps.
        """
        if kernel == "forward":
            return 2 + (-(-layout.steps // CHUNK) if self.skips else 0)
        return 1 if not self.skips else 2 if layout.steps <= CHUNK else 4

    def waiving_bytes(self, kernel: str, layout: Layout, videos: int, *, in_registers: bool) -> int:
        """Return the bytes of shared memory for skip costs and, in registers, for what lanes do beside states."""
        if not self.skips:
            return 0
        found = up(videos * layout.steps * self.bytes, 16)
        if not in_registers:
            return found
        nodes = nodes_of(layout)
        if kernel == "forward":
            return found + 16 * LANES * int(nodes.loose_rows(videos)[-1])
        return found + 16 * videos * nodes.adders + 16 * LANES * int(nodes.gather_rows(videos)[-1])

    def aside(self, layout: Layout, videos: int, *, in_registers: bool) -> int:
        """Return the numbers of memory that a block with videos in packs takes beside its table.

        They are how videos end and, where states are in shared memory, arcs and how often states begin.
        """
        if not self.skips:
            return 0
        found = up(2 * videos * layout.ideals, 4)
        if not in_registers:
            waiving = waiving_of(layout)
            found += 2 * LANES * (waiving.rows + int(waiving.back_rows[-1])) + up(layout.states, 4)
        return found


def width_of(kernel: str, layout: Layout) -> int:
    """Return how many states of an ideal ``kernel`` is compiled for; 0: there are too many."""
    needed = layout.out_width if kernel == "backward" else layout.width
    return next((width for width in WIDTHS if width >= needed), 0)


def up(number: int, multiple: int) -> int:
    """Return the next multiple."""
    return -(-number // multiple) * multiple
