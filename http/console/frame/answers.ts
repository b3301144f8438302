/** What the interface answers about frames. Without the page's requests, so that tests can use what reads them. */
import type { components } from "../../client/interface-types.js";

type Schemas = components["schemas"];
export type Frame = Schemas["CapturedFrameResponse"];
export type FrameGeometry = Frame["geometry"];
export type HeightPlane = FrameGeometry["height"];
export type HeightDtype = HeightPlane["dtype"];
export type RunFile = Schemas["FileMetadata"];
export type Defect = Schemas["DefectModel"];
