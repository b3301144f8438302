/** In print no row, picture or plot is cut, and each sheet repeats the head of its table. */
export const PAGE_STYLE = `
@page { size: A4; margin: 14mm 12mm; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 6mm; max-width: 200mm; background: #fff; color: #111;
  font: 9pt/1.35 system-ui, "Segoe UI", "Liberation Sans", Arial, sans-serif;
  -webkit-print-color-adjust: exact; print-color-adjust: exact; }
bdi { unicode-bidi: isolate; overflow-wrap: anywhere; }
h1 { font-size: 18pt; line-height: 1.15; margin: 2mm 0; overflow: hidden; }
h2 { font-size: 12pt; margin: 6mm 0 2mm; break-after: avoid; }
p { margin: 1.5mm 0; }
.outcome { display: inline-block; padding: 1mm 3mm; border-radius: 1mm; font-weight: 700; font-size: 12pt; color: #fff; }
.pass { background: #146c2e; } .fail { background: #a8200d; } .doubt { background: #5c4a00; }
.notice { border-left: 1mm solid #a8200d; padding: 1mm 3mm; background: #fdf1ef; break-inside: avoid; }
.note { color: #555; font-weight: 400; }
dl { display: grid; grid-template-columns: 34mm minmax(0, 1fr); gap: .6mm 3mm; margin: 3mm 0; }
dt { color: #555; } dd { margin: 0; }
table { width: 100%; border-collapse: collapse; table-layout: fixed; }
thead { display: table-header-group; }
tr { break-inside: avoid; }
th, td { text-align: left; vertical-align: top; padding: .8mm 1.2mm; border-bottom: .2mm solid #bbb; overflow: hidden;
  overflow-wrap: anywhere; font-weight: 400; }
thead th { font-weight: 700; border-bottom: .4mm solid #111; overflow-wrap: normal; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
.status-failed, .status-error { color: #a8200d; font-weight: 700; }
.status-warning, .status-not_evaluated { color: #5c4a00; font-weight: 700; }
.status-passed { color: #146c2e; }
.bar { display: block; width: 100%; height: 3.6mm; }
.zone { fill: #c9dccf; } .nominal { stroke: #111; stroke-width: .6; } .value-pass { fill: #146c2e; }
.value-fail { fill: #a8200d; } .value-doubt { fill: #5c4a00; }
.pictures { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 3mm; }
figure { margin: 0 0 4mm; break-inside: avoid; }
.over { position: relative; overflow: hidden; background: #222; max-width: 100%; }
.over img { display: block; width: 100%; height: 100%; image-rendering: auto; }
.over svg { position: absolute; inset: 0; width: 100%; height: 100%; }
.box { fill: none; stroke: #fff; stroke-width: 1.5px; vector-effect: non-scaling-stroke; }
.edge { fill: none; stroke: #000; stroke-width: 3.5px; vector-effect: non-scaling-stroke; }
.solid { stroke-dasharray: 4 3; }
.over text { font: 700 34px sans-serif; fill: #fff; stroke: #000; stroke-width: 8px; paint-order: stroke; }
.plot { display: block; width: 100%; height: 42mm; border: .2mm solid #bbb; background: #fff; }
.plot path { fill: none; stroke-width: 1.2px; vector-effect: non-scaling-stroke; stroke-linejoin: round; }
.axis { display: flex; justify-content: space-between; color: #555; }
.channel { white-space: nowrap; }
.key { display: inline-block; width: 4mm; height: .8mm; margin: 0 1mm .8mm 3mm; }
`;
