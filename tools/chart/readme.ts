import { listValues } from './values.ts';

const BEGIN = '<!-- values: made of values.yaml by make gen -->';
const END = '<!-- end of values -->';

/**
 * Puts the table of values into the chart's README.
 * @throws Error when the README has no place for it
 */
export function renderChartReadme(readme: string, values: string): string {
  const begin = readme.indexOf(BEGIN);
  const end = readme.indexOf(END);
  if (begin < 0 || end < begin) throw new Error(`the chart's README.md lacks ${BEGIN} and ${END}`);
  const rows = listValues(values)
    .filter(({ isGroup }) => !isGroup)
    .map(
      ({ path, preset, help }) => `| \`${path}\` | \`${JSON.stringify(preset)}\` | ${help.replaceAll('|', '\\|')} |`,
    );
  const table = ['| value | preset | what it does |', '|---|---|---|', ...rows].join('\n');
  return `${readme.slice(0, begin)}${BEGIN}\n\n${table}\n\n${readme.slice(end)}`;
}
