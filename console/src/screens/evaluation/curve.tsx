import { useRef } from "preact/hooks";
import { wholeNumber } from "../../ui/format";
import { useSize } from "../../ui/size";

export interface Series {
  name: string;
  points: { budget: number; mean: number }[];
}

const HEIGHT = 360;
const LEFT = 44;
const RIGHT = 150;
const TOP = 26;
const FOOT = 34;
const APART = 18;

/** Quality against budget: the first run is the one under test, the second is dashed. */
export function Curve({ series, selectedBudget }: { series: readonly Series[]; selectedBudget: number }) {
  const element = useRef<HTMLDivElement>(null);
  const width = Math.max(useSize(element).width, 460);
  const budgets = [...new Set(series.flatMap((line) => line.points.map((point) => point.budget)))].sort((a, b) => a - b);
  const [least, most] = [Math.log2(budgets[0] ?? 1), Math.log2(budgets.at(-1) ?? 2)];
  const low = Math.max(0, Math.floor((Math.min(...series.flatMap((line) => line.points.map((p) => p.mean))) - 5) / 20) * 20);
  const x = (budget: number) => LEFT + ((Math.log2(budget) - least) / (most - least || 1)) * (width - LEFT - RIGHT);
  const y = (mean: number) => TOP + ((100 - mean) / (100 - low || 1)) * (HEIGHT - TOP - FOOT);
  const grades = [low, low + (100 - low) / 4, low + (100 - low) / 2, low + (3 * (100 - low)) / 4, 100];
  const ends = labels(series, y);
  return (
    <div ref={element} class="curve" tabIndex={0} role="group" aria-label="Quality against budget">
      <svg width={width} height={HEIGHT} role="img" aria-label="Share of the evidence in the window against the budget">
        <text x="0" y="12">
          % of the evidence in the window
        </text>
        {grades.map((grade) => (
          <g key={grade}>
            <line class="rule" x1={LEFT} x2={width - RIGHT} y1={y(grade)} y2={y(grade)} />
            <text x={LEFT - 8} y={y(grade) + 4} text-anchor="end">
              {Math.round(grade)}
            </text>
          </g>
        ))}
        {budgets.map((budget) => (
          <text key={budget} x={x(budget)} y={HEIGHT - 10} text-anchor="middle">
            {wholeNumber(budget)}
          </text>
        ))}
        <text x={width} y={HEIGHT - 10} text-anchor="end">
          tokens
        </text>
        <line class="chosen" x1={x(selectedBudget)} x2={x(selectedBudget)} y1={TOP} y2={HEIGHT - FOOT} />
        {series.map((line, at) => (
          <g key={line.name} class={at === 0 ? "run" : "run other"}>
            <path d={line.points.map((point, n) => `${n === 0 ? "M" : "L"}${x(point.budget)},${y(point.mean)}`).join("")} />
            {line.points.map((point) => (
              <circle key={point.budget} cx={x(point.budget)} cy={y(point.mean)} r={point.budget === selectedBudget ? 6 : 3} />
            ))}
            <text x={width - RIGHT + 12} y={ends[at]} class="run-name">
              {line.name.length > 16 ? `${line.name.slice(0, 15)}…` : line.name}
            </text>
          </g>
        ))}
      </svg>
    </div>
  );
}

/** Where the names of the runs stand, without standing on each other. */
function labels(series: readonly Series[], y: (mean: number) => number): number[] {
  const heights: number[] = [];
  for (const line of series) {
    let height = y(line.points.at(-1)?.mean ?? 0) + 4;
    for (const other of heights) if (Math.abs(other - height) < APART) height = other + APART;
    heights.push(height);
  }
  return heights;
}
