"""How a part lies on the bed of a 3-D printer.

A printer lays down plastic from the bed upwards, and whatever overhangs by more than 45° needs support that is thrown
away. How much, depends on how the part is laid. Wanted is the direction in the part that points up, such that
support, height (time) and a small base (a part that falls over) cost least, in cm³ of plastic.

The space is the sphere of directions: turning the part about the vertical changes nothing. Two angles would do, but
they tear at the poles, which are just the directions in which engineers draw. The objective jumps wherever a face
becomes steeper than 45°. The part is a bracket of boxes and cylinders, built and sampled by trimesh (MIT).
"""

import numpy as np

import nestbo as nb
from nestbo.gallery import Application, Coordinates, draw, needs

with needs("trimesh", "manifold3d", "rtree"):
    import trimesh
    from trimesh.creation import box, cylinder
    from trimesh.transformations import rotation_matrix, translation_matrix

SAMPLES = 2500  # points on the surface: 6 mm² each
STEEP = np.cos(np.pi / 4)  # of the angle between an overhang and the vertical
TOUCHES = 0.3  # mm above the bed


def placed(solid, move, angle=0.0, axis=(0, 0, 1)):
    solid.apply_transform(translation_matrix(move) @ rotation_matrix(angle, axis))
    return solid


def bracket():
    """A bracket with a wall, a rib, an inclined tube and four holes; mm."""
    body = [
        box([60, 40, 6]),
        placed(box([6, 40, 45]), [-27, 0, 22]),
        placed(box([50, 5, 5]), [-8, 0, 18], -0.7, [0, 1, 0]),
        placed(cylinder(11, 30, sections=48), [16, 4, 14], 0.5, [1, 0.4, 0]),
        placed(box([8, 30, 8]), [-27, 25, 38], 0.35),
    ]
    holes = [
        placed(cylinder(3, 40, sections=32), [10, -14, 0]),
        placed(cylinder(3, 40, sections=32), [24, -14, 0]),
        placed(cylinder(7, 60, sections=48), [16, 4, 14], 0.5, [1, 0.4, 0]),
        placed(cylinder(8, 40, sections=48), [-27, 0, 28], np.pi / 2, [0, 1, 0]),
    ]
    return trimesh.boolean.difference([trimesh.boolean.union(body, engine="manifold"), *holes], engine="manifold")


PART = bracket()
POINTS, FACES = trimesh.sample.sample_surface(PART, SAMPLES, seed=0)
NORMALS, AREA = PART.face_normals[FACES], PART.area / SAMPLES
RAYS = trimesh.ray.ray_triangle.RayMeshIntersector(PART)


def supported(up):
    """Which samples need support, and how far it reaches down from there: to the bed or to the part itself, in mm."""
    z = POINTS @ up
    drop = z - (PART.vertices @ up).min()
    steep = (NORMALS @ up < -STEEP) & (drop > TOUCHES)
    starts, drop = POINTS[steep] - 1e-3 * up, drop[steep]
    if len(starts):
        hits, rays, _ = RAYS.intersects_location(starts, np.tile(-up, (len(starts), 1)), multiple_hits=False)
        np.minimum.at(drop, rays, np.linalg.norm(hits - starts[rays], axis=1))
    return steep, drop


def cost(up):
    """cm³ of support, and what height and a small base cost."""
    steep, drop = supported(up)
    support = (drop * -(NORMALS @ up)[steep]).sum() * AREA / 1000
    height = np.ptp(PART.vertices @ up)
    lying = (POINTS @ up < (PART.vertices @ up).min() + TOUCHES) & (NORMALS @ up < -0.99)
    base = lying.sum() * AREA / 100  # cm² on the bed
    return float(support + 0.05 * height + 3 * np.exp(-base / 2))


def picture(up, axes):
    """The part as it lies, with its support."""
    turn = trimesh.geometry.align_vectors(up, [0, 0, 1])[:3, :3]
    vertices = PART.vertices @ turn.T
    floor = vertices[:, 2].min()
    axes.plot_trisurf(*vertices.T, triangles=PART.faces, color="tab:blue", edgecolor="none", alpha=0.9)
    steep, drop = supported(up)
    for top, length in zip((POINTS[steep] @ turn.T)[::3], drop[::3], strict=True):
        axes.plot([top[0]] * 2, [top[1]] * 2, [top[2] - length, top[2]], color="tab:orange", linewidth=0.7)
    axes.set_zlim(floor, vertices[:, 2].max())
    axes.set_box_aspect(np.ptp(vertices, axis=0), zoom=1.2)
    axes.set_axis_off()
    axes.set_title(f"{cost(up):.2f} cm³, supports in orange", size=9)


def polar(u):
    return np.array([np.sin(u[0]) * np.cos(u[1]), np.sin(u[0]) * np.sin(u[1]), np.cos(u[0])])


APPLICATION = Application(
    name="printing",
    value="cm³",
    space=nb.Sphere(2),
    objective=cost,
    picture=picture,
    coordinates=[
        Coordinates("polar angles", [0.0, -np.pi], [np.pi, np.pi], polar),
        Coordinates("normalised vectors", [-1.0] * 3, [1.0] * 3, lambda u: u / max(np.linalg.norm(u), 1e-9)),
    ],
    budget=40,
    worst=100.0,
    solid=True,
)

if __name__ == "__main__":
    study = nb.Study(nb.Sphere(2), seed=0, store="printing.db")
    study.run(cost, budget=APPLICATION.budget, numpy=True)
    print(f"{study.best.value:.2f} cm³ with {study.best.x.numpy().round(3)} up")
    draw(APPLICATION, study).savefig("printing.png")
