// One plot per metric. They share a cursor: pointing into one shows the same moment in all.
import uPlot from 'uplot';
import { clock, number } from './format.js';
import { STEPS } from './timeline.js';

const HEIGHT = 150;
const DAYS = [2, 5, 10, 30, 100, 300].map((days) => days * 86400);
const colour = (name) => () => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

class Plot {
  constructor(parent, name) {
    this.figure = document.createElement('figure');
    this.figure.className = 'plot panel';
    this.figure.dataset.name = name;
    this.figure.innerHTML = '<figcaption><b></b><span class="at"></span><span class="value"></span></figcaption><div class="canvas" role="img"></div>';
    this.figure.querySelector('b').textContent = name;
    this.canvas = this.figure.querySelector('.canvas');
    parent.append(this.figure);
    this.name = name;
    this.points = [];
    const axis = { stroke: colour('--muted'), font: '11px system-ui, sans-serif', grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false } };
    this.plot = new uPlot({
      width: Math.max(200, this.canvas.clientWidth),
      height: HEIGHT,
      padding: [6, 26, 0, 0], // the last time is written around its end
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, y: false, sync: { key: 'job' } },
      axes: [
        { ...axis, size: 24, space: 60, incrs: [...STEPS, ...DAYS], values: (_, splits, _axis, _space, step) => splits.map((t) => clock(t * 1000, step)) },
        { ...axis, size: 52, values: (_, splits) => splits.map(number) },
      ],
      series: [{}, { stroke: colour('--accent'), fill: colour('--accent-faint'), width: 1.5 }],
      hooks: { setCursor: [() => this.showValue()] },
    }, [[], []], this.canvas);
    this.resized = new ResizeObserver(() => {
      const width = this.canvas.clientWidth;
      if (width && width !== this.plot.width) this.plot.setSize({ width, height: HEIGHT });
    });
    this.resized.observe(this.canvas);
  }

  setPoints(points) {
    const last = points.at(-1);
    const before = this.points.at(-1);
    // Of a series that only grows, length and end say whether it is the same.
    if (points.length === this.points.length && last?.[0] === before?.[0] && last?.[1] === before?.[1]) return;
    this.points = points;
    this.plot.setData([points.map((p) => p[0]), points.map((p) => p[1])]);
    this.figure.dataset.points = points.length;
    this.canvas.setAttribute('aria-label', `${this.name} over time: ${points.length} points, last ${number(last?.[1])}`);
    this.showValue();
  }

  /** Of the moment pointed at, else the last one. */
  showValue() {
    const i = this.plot?.cursor.idx ?? undefined;
    const point = (i !== undefined && this.points[i]) || this.points.at(-1);
    this.figure.querySelector('.at').textContent = i !== undefined && point ? clock(point[0] * 1000) : '';
    this.figure.querySelector('.value').textContent = number(point?.[1]);
  }

  destroy() {
    this.resized.disconnect();
    this.plot.destroy();
    this.figure.remove();
  }
}

/** @param {Element} parent */
export function makePlots(parent) {
  /** @type {Map<string, Plot>} */
  const plots = new Map();
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const recolour = () => plots.forEach((plot) => plot.plot.redraw(false, true));
  dark.addEventListener('change', recolour);
  const drop = (name) => {
    plots.get(name).destroy();
    plots.delete(name);
  };
  return {
    /** @param {{name: string, points: [number, number | null][]}[]} series */
    show(series) {
      const names = new Set(series.map(({ name }) => name));
      for (const name of [...plots.keys()]) if (!names.has(name)) drop(name);
      for (const { name, points } of series) {
        if (!plots.has(name)) plots.set(name, new Plot(parent, name));
        plots.get(name).setPoints(points);
      }
    },
    destroy() {
      dark.removeEventListener('change', recolour);
      [...plots.keys()].forEach(drop);
    },
  };
}
