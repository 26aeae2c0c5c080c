import { Ajv, type ValidateFunction } from 'ajv';
import test from 'ava';
import fc from 'fast-check';
import { AGENT_PROGRAM } from '../../agent/config/agent-config.ts';
import { IPAMD_PROGRAM } from '../../ipamd/config/options.ts';
import type { Option, SettingsProgram } from '../../runtime/settings/option.ts';
import { SCHEDULER_PROGRAM } from '../../scheduler/config/options.ts';
import { renderChart } from '../../tools/chart/render-chart.ts';
import { WEBHOOK_PROGRAM } from '../../webhook/options.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { assertLaw } from '../support/law.ts';

// The schema of the chart against the programs: what a program refuses of one setting, the schema refuses before anything is installed.

const SCHEMA: unknown = JSON.parse(renderChart().get('values.schema.json') ?? '');
const PROGRAMS: Readonly<Record<string, SettingsProgram>> = {
  agent: AGENT_PROGRAM,
  ipamd: IPAMD_PROGRAM,
  scheduler: SCHEDULER_PROGRAM,
  webhook: WEBHOOK_PROGRAM,
};
const ajv = new Ajv({ allErrors: true, allowUnionTypes: true, strict: true });

type Setting = { readonly title: string; readonly option: Option<unknown>; readonly check: ValidateFunction };

/** Every setting that the chart takes. */
const SETTINGS: readonly Setting[] = Object.entries(PROGRAMS).flatMap(([component, { options }]) =>
  Object.values(options).flatMap((option) => {
    const schema = at(SCHEMA, 'properties', component, 'properties', 'settings', 'properties', option.flag);
    const title = `${component}.settings.${option.flag}`;
    return schema === undefined ? [] : [{ title, option, check: ajv.compile(schema as object) }];
  }),
);

/** A text as Helm has it from YAML where the setting is a number or a switch; nothing where it cannot be one. */
function yamlOf({ form }: Option<unknown>['value'], text: string): unknown {
  if (form.kind === 'switch') return text === 'true' || text === 'false' ? text === 'true' : text;
  if (form.kind === 'number') return /^-?[0-9]+(\.[0-9]+)?$/.test(text) ? Number(text) : text;
  return text;
}

/** Rules that a regular expression cannot say, by the texts that only the program refuses. */
const PROGRAM_ALONE: Readonly<Record<string, readonly string[]>> = {
  'eni-mark-mask': ['65535', '65536', '70000'],
  'vpc-cidr': ['10.0.0.1/8', 'fd00:::/8'],
  'service-cidrs': ['10.0.0.1/8', 'fd00:::/8'],
  'pod-cidr': ['10.0.0.1/8', 'fd00:::/8'],
  'cluster-cidr': ['10.0.0.1/8'],
  'service-cluster-ip-range': ['10.0.0.1/8'],
  'primary-interface': ['all', 'default'],
  'gr-bridge': ['all', 'default'],
};

/** Of a time of several parts the schema compares each with the maximum, and nothing with the minimum. */
function isForTheProgram({ flag, value }: Option<unknown>, text: string): boolean {
  const isSumOfTimes = value.metavar === 'TIME' && ['1h1m', '1m30s', '4m59s'].includes(text);
  return isSumOfTimes || PROGRAM_ALONE[flag]?.includes(text) === true;
}

const TEXTS: readonly string[] = [
  '|yes|true|false|auto|none|debug|info|file|a b|x,y|ünï|all|default|eth0|-1|0|1|7|300|1279|1280|65535',
  '65536|70000|4294967295|1.5|1e3|99999999999999999999|0s|1s|4m59s|299s|300s|5m|100ms|99ms|1h|1h1m|2h',
  '24h|25h|1d|5|1 m|1500h|-5m|00h|1m30s|/x|/run/a.sock|x/y|./x|/a,/b|/a,b|,|127.0.0.1:1|127.0.0.1:61680',
  '[::1]:80|0.0.0.0:80|host:0|host:65536|host:65535|:80|host|[::1]|localhost:80|0x00ff0000|0xff00|0x80',
  '0xff|0x1fe00|0x00FF0000|0x0f0f0000|0xffffffff|ff0000|10.0.0.0/8|10.0.0.0/33|10.0.0.1/8|256.0.0.0/8',
  '10.0.0/8|fd00::/8|fd00:::/8|fd00::/129|10.0.0.0/8,fd00::/8|10.0.0.0|https://10.0.0.1:6443',
  'http://h/path|https://h/|ftp://h|10.0.0.1:6443|subnet-a1b2c3d4|subnet-|subnet-A|sg-a1b2c3d4',
  'sg-a1b2c3d4,sg-b|vpc-1|cls-1|qcs::cam::uin/1:roleName/x|qcs::cam|system:kube-scheduler',
  'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn',
  'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn|Kube-System|kube-system|-x',
  'a-name-of-an-interface|eth0:1|eth0/1',
].flatMap((line) => line.split('|'));

for (const { title, option, check } of SETTINGS) {
  test(`${title}: the schema takes what the program takes, and refuses what it refuses`, (t) => {
    for (const text of [...TEXTS, option.defaultText]) {
      const value = yamlOf(option.value, text);
      const isTaken = option.value.parse(text) !== undefined;
      const isAlone = isForTheProgram(option, text);
      // '' for a number or a switch is no value of YAML.
      if (typeof value === 'string' && option.value.form.kind !== 'text' && option.value.form.kind !== 'words')
        continue;
      if (isAlone && !isTaken) continue;
      t.is(check(value), isTaken, `${JSON.stringify(value)}: the program ${isTaken ? 'takes' : 'refuses'} it`);
      if (option.value.isList === true) t.is(check([text]), isTaken, `[${JSON.stringify(text)}]`);
    }
  });
}

test('settings of the chart: some of every form', (t) => {
  const kinds = new Set(SETTINGS.map(({ option }) => option.value.form.kind));
  t.deepEqual([...kinds].sort(), ['number', 'switch', 'text', 'words']);
  t.true(SETTINGS.length > 80);
});

const UNIT = fc.constantFrom('ms', 's', 'm', 'h');
const TIMES = SETTINGS.filter(({ option }) => option.value.metavar === 'TIME');
const NUMBERS = SETTINGS.filter(({ option }) => option.value.metavar === 'NUMBER');

test('settings of the chart: a time is refused by the schema as by the program; of several parts at most more is taken', async (t) => {
  const count = fc.oneof(fc.nat(100), fc.nat(100_000), fc.nat());
  await assertLaw(t, (t) =>
    fc.property(
      fc.constantFrom(...TIMES),
      fc.array(fc.tuple(count, UNIT), { minLength: 1, maxLength: 3 }),
      (setting, parts) => {
        const text = parts.map(([number, unit]) => `${number}${unit}`).join('');
        const isTaken = setting.option.value.parse(text) !== undefined;
        if (parts.length === 1 || isTaken) t.is(setting.check(text), isTaken, `${setting.title}: ${text}`);
      },
    ),
  );
});

test('settings of the chart: a number is refused by the schema as by the program', async (t) => {
  await assertLaw(t, (t) =>
    fc.property(fc.constantFrom(...NUMBERS), fc.oneof(fc.nat(2_000), fc.nat(200_000)), (setting, number) => {
      t.is(
        setting.check(number),
        setting.option.value.parse(String(number)) !== undefined,
        `${setting.title}: ${number}`,
      );
    }),
  );
});
