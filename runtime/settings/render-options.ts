import { isRequired, type Option, type OptionTable, type SettingsProgram } from './option.ts';

/** Flags that are not settings: they name the file of settings, or request a text. */
export const META_FLAGS = [
  {
    flag: 'config',
    metavar: 'PATH',
    help: 'YAML file with settings; its keys are the flags without dashes. Flags go before variables, variables before the file.',
  },
  { flag: 'help', metavar: '', help: 'Print this and exit.' },
  { flag: 'version', metavar: '', help: 'Print the version and exit.' },
] as const;

const INDENT = '      ';
const COLUMNS = 80;

/** Renders the output of `--help`, 80 columns wide. */
export function renderHelp(program: SettingsProgram): string {
  const lines = [
    `Usage: ${program.name} [FLAG]...`,
    '',
    'A setting can also be a variable TKE_ENI_<FLAG> or a key of the --config file.',
  ];
  for (const [section, options] of bySection(program.options)) {
    lines.push('', `${section}:`);
    for (const option of options) {
      const { flag, value, defaultText, help } = option;
      const shown = defaultText === '' ? "''" : defaultText;
      lines.push(
        `  --${flag}${value.metavar === '' ? '' : ` ${value.metavar}`}`,
        ...wrap(isRequired(option) ? `${help} Required.` : `${help} Default: ${shown}.`),
      );
    }
  }
  lines.push('', 'Other:');
  for (const { flag, metavar, help } of META_FLAGS) {
    lines.push(`  --${flag}${metavar === '' ? '' : ` ${metavar}`}`, ...wrap(help));
  }
  return `${lines.join('\n')}\n`;
}

/** Renders the page in docs/ about the settings of an executable. */
export function renderConfigDoc(program: SettingsProgram): string {
  const { flag: shownFlag, text } = program.example;
  const lines = [
    `# Settings of ${program.name}`,
    '',
    `<!-- Made from ${program.source}. Change it there, then: make gen -->`,
    '',
    `Each setting can be given as a flag (\`--${shownFlag}=${text}\`), as a variable (\`${variableOf(shownFlag)}=${text}\`) or in the YAML file`,
    `that \`--config\` or \`TKE_ENI_CONFIG\` names (\`${shownFlag}: ${text}\`). Flags go before variables, variables before the file. Lists:`,
    `the flag repeated, commas in a variable, a list in the file. Wrong settings are all reported at once, and ${program.name} exits`,
    'with 78 (`EX_CONFIG`). Variables with the prefix that are not in this table are ignored: Kubernetes makes such ones of',
    'Service names.',
  ];
  for (const [section, options] of bySection(program.options)) {
    lines.push('', `## ${section}`, '', '| flag | variable | default | what it does |', '|---|---|---|---|');
    for (const option of options) {
      const { flag, value, defaultText, help } = option;
      const usage = `--${flag}${value.metavar === '' ? '' : `=${value.metavar}`}`;
      const shown = isRequired(option)
        ? 'required'
        : defaultText === ''
          ? 'none'
          : `\`${defaultText.replaceAll(',', ', ')}\``;
      lines.push(`| ${[`\`${usage}\``, `\`${variableOf(flag)}\``, shown, help].map(escapeCell).join(' | ')} |`);
    }
  }
  return `${lines.join('\n')}\n`;
}

/** Returns the environment variable of a flag. */
export function variableOf(flag: string): string {
  return `TKE_ENI_${flag.replaceAll('-', '_').toUpperCase()}`;
}

function bySection(options: OptionTable): ReadonlyMap<string, readonly Option<unknown>[]> {
  return Map.groupBy(Object.values(options), (option) => option.section);
}

function escapeCell(text: string): string {
  return text.replaceAll('|', '\\|');
}

function wrap(text: string): readonly string[] {
  const lines: string[] = [];
  let line = INDENT;
  for (const word of text.split(' ')) {
    if (line.length + word.length > COLUMNS && line !== INDENT) {
      lines.push(line.trimEnd());
      line = INDENT;
    }
    line += `${word} `;
  }
  return [...lines, line.trimEnd()];
}
