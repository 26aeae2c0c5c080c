/**
 * Colours of a drawing by their names in the style sheet, light and dark. Text has a contrast of at least 4.5 on its
 * background.
 */
const THEMES = {
  light: {
    ground: '#f6f7f9',
    band: '#ffffff',
    'band-line': '#d5dae1',
    grid: '#f1f4f8',
    ink: '#1b2430',
    muted: '#566274',
    line: '#98a3b3',
    card: '#ffffff',
    'card-line': '#aab4c2',
    pod: '#e8f0fe',
    'pod-line': '#7aa0dd',
    veth: '#eef2f7',
    'veth-line': '#a9b8cc',
    mark: '#f4ecfb',
    'mark-line': '#b894d6',
    rule: '#fdf3e0',
    'rule-line': '#d9ab55',
    table: '#e9f6ef',
    'table-line': '#76b795',
    eni: '#e3f4f8',
    'eni-line': '#63abc0',
    foreign: '#f3f3f3',
    'foreign-line': '#9a9a9a',
    bad: '#c11a2b',
    'bad-ground': '#fdeaec',
    warn: '#8a5a00',
    'warn-line': '#d19a1c',
    'warn-ground': '#fff6dc',
    out: '#1a5fd0',
    in: '#0c7a55',
    accent: '#1a5fd0',
    find: '#ffe27a',
  },
  dark: {
    ground: '#10151c',
    band: '#171e28',
    'band-line': '#2c3848',
    grid: '#1c2531',
    ink: '#e7edf5',
    muted: '#a2b0c2',
    line: '#65758a',
    card: '#1c2531',
    'card-line': '#4b5b70',
    pod: '#1b2c49',
    'pod-line': '#5480c4',
    veth: '#222d3b',
    'veth-line': '#52657d',
    mark: '#2d2240',
    'mark-line': '#9067b8',
    rule: '#352a14',
    'rule-line': '#ac8134',
    table: '#17322a',
    'table-line': '#4b9171',
    eni: '#15323b',
    'eni-line': '#418da3',
    foreign: '#262626',
    'foreign-line': '#7d7d7d',
    bad: '#ff7b86',
    'bad-ground': '#3f1a20',
    warn: '#f0bf58',
    'warn-line': '#c08f2a',
    'warn-ground': '#37290c',
    out: '#7ab0ff',
    in: '#52d3a4',
    accent: '#7ab0ff',
    find: '#7a6000',
  },
} as const;

/**
 * Replaces `var(--name)` in a style sheet by colours. The result has the sheet twice: for light, which also prints, and
 * for dark. Programs that draw SVG outside a browser do not support variables.
 * @throws when the sheet names an unknown colour
 */
export function renderThemed(sheet: string): string {
  return `${coloured(sheet, THEMES.light)}\n@media screen and (prefers-color-scheme: dark) {\n${coloured(sheet, THEMES.dark)}}\n`;
}

function coloured(sheet: string, theme: Readonly<Record<string, string>>): string {
  return sheet.replace(/var\(--([a-z-]+)\)/g, (_, name: string) => {
    const colour = theme[name];
    if (colour === undefined) throw new Error(`the style sheet wants colour ${name}, which no theme has`);
    return colour;
  });
}
