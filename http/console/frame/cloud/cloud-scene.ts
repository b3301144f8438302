/** The scene of a point cloud. This file alone brings three into the page, when a cloud is looked at. */
import {
  BufferAttribute,
  BufferGeometry,
  Color,
  Group,
  LinearSRGBColorSpace,
  Matrix4,
  PerspectiveCamera,
  Points,
  PointsMaterial,
  Scene,
  Spherical,
  Vector3,
  WebGLRenderer,
} from "three";
import { OrbitControls } from "three/addons/controls/OrbitControls.js";
import type { Point2, Point3 } from "../../../../core/run/oriented-box.js";
import { pickPoint } from "./pick-point.js";

export type CloudView = "home" | "top" | "front" | "side";

const BACKGROUND = 0x14181b;
const FIELD_OF_VIEW_DEGREES = 32;
/** A part is flatter than the ball around it: the camera can be nearer. */
const FILLING = 0.85;
/** How far above the middle of its box a number is drawn, so that it does not hide a small box. */
const LABEL_ABOVE_PIXELS = 22;
/** The direction of each view, as angles from the z axis and about it. Exactly from above there is no "up", so `top` is slightly tilted. */
const DIRECTIONS: Readonly<Record<CloudView, readonly [polar: number, azimuth: number]>> = {
  home: [0.9, 0.5],
  top: [1e-4, 0],
  front: [Math.PI / 2, 0],
  side: [Math.PI / 2, Math.PI / 2],
};

export interface SceneBox {
  readonly index: number;
  readonly centre: Point3;
  readonly corners: readonly Point3[];
  readonly colour: string;
  readonly isChosen: boolean;
}

/** Draws points, and turns them. Coordinates of callers are those of the PLY, in mm. */
export class CloudScene {
  readonly #renderer: WebGLRenderer;
  readonly #scene = new Scene();
  readonly #camera = new PerspectiveCamera(FIELD_OF_VIEW_DEGREES, 1, 0.01, 1e5);
  readonly #controls: OrbitControls;
  /**
   * Turns millimetres around the middle into places of the scene. y is turned over, because lines count downwards in the map and in the pictures. So
   * the cloud looks like them from above, and letters on a part can be read. z is stretched.
   */
  readonly #group = new Group();
  readonly #points = new Points(
    new BufferGeometry(),
    new PointsMaterial({ vertexColors: true, sizeAttenuation: false }),
  );
  #boxes: readonly SceneBox[] = [];
  #middle = new Vector3();
  #halfSize = new Vector3(1, 1, 1);
  #frame = 0;

  /** @param onDrawn called when the picture has changed. @throws {Error} if the browser has no WebGL */
  constructor(canvas: HTMLCanvasElement, onDrawn: () => void, onCamera: () => void) {
    this.#renderer = new WebGLRenderer({ canvas, antialias: true, powerPreference: "high-performance" });
    this.#renderer.setPixelRatio(Math.min(2, devicePixelRatio || 1));
    // The colours are already those that the screen should show.
    this.#renderer.outputColorSpace = LinearSRGBColorSpace;
    this.#renderer.setClearColor(new Color().setHex(BACKGROUND, LinearSRGBColorSpace));
    this.#camera.up.set(0, 0, 1);
    // The browser took the graphics away, and has given them back: three has them again, but draws nothing by itself.
    canvas.addEventListener("webglcontextrestored", () => this.draw());
    this.#controls = new OrbitControls(this.#camera, canvas);
    this.#controls.zoomToCursor = true;
    this.#controls.addEventListener("change", () => this.draw());
    this.#controls.addEventListener("end", onCamera);
    this.#group.add(this.#points);
    this.#points.frustumCulled = false;
    this.#scene.add(this.#group);
    this.#onDrawn = onDrawn;
  }

  readonly #onDrawn: () => void;

  /** @param positions x, y, z of each point. Its colours must follow. */
  setPoints(positions: Float32Array): void {
    const [least, most] = bounds(positions);
    this.#middle = least.clone().add(most).multiplyScalar(0.5);
    this.#halfSize = most.clone().sub(least).multiplyScalar(0.5);
    const centred = new Float32Array(positions.length);
    const middle = this.#middle.toArray();
    for (let at = 0; at < positions.length; at++) {
      centred[at] = (positions[at] as number) - (middle[at % 3] as number);
    }
    this.#points.geometry.dispose();
    this.#points.geometry = new BufferGeometry();
    this.#points.geometry.setAttribute("position", new BufferAttribute(centred, 3));
  }

  /** @param colours red, green, blue of each point, 0 to 255 */
  setColours(colours: Uint8Array): void {
    this.#points.geometry.setAttribute("color", new BufferAttribute(colours, 3, true));
    this.draw();
  }

  setLooks(pointPixels: number, stretch: number): void {
    this.#points.material.size = pointPixels;
    this.#group.scale.set(1, -1, stretch);
    this.draw();
  }

  setBoxes(boxes: readonly SceneBox[]): void {
    this.#boxes = boxes;
    this.draw();
  }

  /** What lies over the points. `onDrawn` draws it. */
  get boxes(): readonly SceneBox[] {
    return this.#boxes;
  }

  /** Position and target of the camera, from the middle of the cloud, in mm. */
  get camera(): number[] {
    return [...this.#camera.position.toArray(), ...this.#controls.target.toArray()];
  }

  set camera(values: readonly number[]) {
    this.#camera.position.fromArray(values, 0);
    this.#controls.target.fromArray(values, 3);
    this.#settle();
  }

  /** Looks at all of the cloud. */
  look(view: CloudView): void {
    this.#controls.target.set(0, 0, 0);
    const [polar, azimuth] = DIRECTIONS[view];
    this.#placeCamera(this.#wholeDistance, polar, azimuth);
  }

  /** Goes to a box of that size around a point, from the present direction, and no farther away than needed to show everything. */
  goTo(point: Point3, sizeMm: number): void {
    const { theta, phi } = this.#direction();
    this.#controls.target.copy(this.#inScene(point));
    const whole = this.#wholeDistance;
    this.#placeCamera(Math.min(whole, Math.max(4 * sizeMm, whole / 50)), phi, theta);
  }

  /** Turns the camera about its target, and changes its distance by a factor. */
  turn(byAzimuth: number, byPolar: number, factor = 1): void {
    const { radius, phi, theta } = this.#direction();
    const polar = Math.min(Math.PI - 1e-4, Math.max(1e-4, phi + byPolar));
    this.#placeCamera(radius * factor, polar, theta + byAzimuth);
  }

  /** Moves the camera and its target across the view, by so many pixels to the right and down as seen at the target. */
  pan(x: number, y: number): void {
    const seenMm = 2 * this.#direction().radius * Math.tan((FIELD_OF_VIEW_DEGREES * Math.PI) / 360);
    const move = new Vector3(x, -y, 0).multiplyScalar(seenMm / this.#size().height);
    move.applyQuaternion(this.#camera.quaternion);
    this.#camera.position.add(move);
    this.#controls.target.add(move);
    this.#settle();
  }

  /** The place of a point among those that were set; -1 if none is near. */
  pick([x, y]: Point2): number {
    const positions = this.#points.geometry.getAttribute("position");
    if (positions === undefined) return -1;
    const { width, height } = this.#size();
    const matrix = this.#matrix().elements;
    return pickPoint(positions.array as Float32Array, { matrix, width, height, x, y });
  }

  /** Where the numbers of the boxes are on the screen. */
  labels(): { index: number; at: Point2; colour: string }[] {
    return this.#boxes.flatMap(({ index, centre, colour }) => {
      const at = this.screenPlace(centre);
      return at === undefined ? [] : [{ index, at: [at[0], at[1] - LABEL_ABOVE_PIXELS] as const, colour }];
    });
  }

  /** Where a point is on the screen. */
  screenPlace(point: Point3): Point2 | undefined {
    const { width, height } = this.#size();
    const place = new Vector3(...point).sub(this.#middle).applyMatrix4(this.#matrix());
    return place.z > 1 ? undefined : [((place.x + 1) / 2) * width, ((1 - place.y) / 2) * height];
  }

  /** Where the axes point on the screen: x, y and z, each of length 1 at most. y of the screen is down. */
  axes(): Point2[] {
    const [right, up] = [new Vector3(), new Vector3()];
    this.#camera.matrixWorld.extractBasis(right, up, new Vector3());
    const inScene: Point3[] = [
      [1, 0, 0],
      [0, -1, 0],
      [0, 0, 1],
    ];
    return inScene.map((axis) => {
      const direction = new Vector3(...axis);
      return [direction.dot(right), -direction.dot(up)];
    });
  }

  resize(width: number, height: number): void {
    this.#renderer.setSize(width, height, false);
    this.#camera.aspect = width / Math.max(1, height);
    this.#camera.updateProjectionMatrix();
    this.draw();
  }

  /** Draws at the screen's next refresh. */
  draw(): void {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#renderer.render(this.#scene, this.#camera);
      this.#onDrawn();
    });
  }

  end(): void {
    cancelAnimationFrame(this.#frame);
    this.#controls.dispose();
    this.#points.geometry.dispose();
    this.#points.material.dispose();
    this.#renderer.dispose();
  }

  /** The radius of a ball around the cloud as it is drawn. */
  get #radius(): number {
    return Math.max(1e-6, this.#halfSize.clone().multiply(this.#group.scale).length());
  }

  get #wholeDistance(): number {
    const narrow = Math.min(1, this.#camera.aspect);
    return (FILLING * this.#radius) / Math.sin((FIELD_OF_VIEW_DEGREES * Math.PI) / 360) / narrow;
  }

  #size(): { width: number; height: number } {
    const { clientWidth, clientHeight } = this.#renderer.domElement;
    return { width: clientWidth, height: clientHeight };
  }

  #matrix(): Matrix4 {
    this.#camera.updateMatrixWorld();
    this.#group.updateMatrixWorld();
    return new Matrix4()
      .multiplyMatrices(this.#camera.projectionMatrix, this.#camera.matrixWorldInverse)
      .multiply(this.#group.matrixWorld);
  }

  #inScene(point: Point3): Vector3 {
    return new Vector3(...point).sub(this.#middle).multiply(this.#group.scale);
  }

  /** From the target to the camera; z is up. three's spherical angles have y up. */
  #direction(): Spherical {
    const { x, y, z } = this.#camera.position.clone().sub(this.#controls.target);
    return new Spherical().setFromVector3(new Vector3(x, z, -y));
  }

  #placeCamera(distance: number, polar: number, azimuth: number): void {
    const { x, y, z } = new Vector3().setFromSpherical(new Spherical(distance, polar, azimuth));
    this.#camera.position.set(x, -z, y).add(this.#controls.target);
    this.#settle();
  }

  #settle(): void {
    const distance = this.#camera.position.distanceTo(this.#controls.target);
    this.#camera.near = Math.max(distance, this.#radius) / 1000;
    this.#camera.far = (distance + this.#radius) * 60;
    this.#camera.updateProjectionMatrix();
    this.#controls.update();
    this.draw();
  }
}

function bounds(positions: Float32Array): [Vector3, Vector3] {
  const least = [0, 0, 0].map(() => Number.POSITIVE_INFINITY);
  const most = [0, 0, 0].map(() => Number.NEGATIVE_INFINITY);
  for (let at = 0; at < positions.length; at++) {
    const value = positions[at] as number;
    const axis = at % 3;
    if (value < (least[axis] as number)) least[axis] = value;
    if (value > (most[axis] as number)) most[axis] = value;
  }
  return positions.length === 0 ? [new Vector3(), new Vector3()] : [new Vector3(...least), new Vector3(...most)];
}
