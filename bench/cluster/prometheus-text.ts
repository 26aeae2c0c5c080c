/**
 * Adds up the samples of a metric in Prometheus' text format whose labels contain all of the given ones. Pure; 0 when
 * there is none. `name` is whole: `…_sum`, `…_count`.
 * @see https://prometheus.io/docs/instrumenting/exposition_formats/
 */
export function sumSamples(text: string, name: string, labels: Readonly<Record<string, string>> = {}): number {
  const wanted = Object.entries(labels).map(([key, value]) => `${key}="${value}"`);
  let sum = 0;
  for (const line of text.split('\n')) {
    if (!line.startsWith(name)) continue;
    const [, found = '', value] = /^(?:\{(.*)\})? (\S+)/.exec(line.slice(name.length)) ?? [];
    if (value !== undefined && wanted.every((label) => found.split(',').includes(label))) sum += Number(value);
  }
  return sum;
}
