import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { AGENT_PROGRAM } from '../../agent/config/agent-config.ts';
import { CCM_PROGRAM } from '../../cloud-controller-manager/config/options.ts';
import { IPAMD_PROGRAM } from '../../ipamd/config/options.ts';
import type { SettingsProgram } from '../../runtime/settings/option.ts';
import { SCHEDULER_PROGRAM } from '../../scheduler/config/options.ts';
import { renderChart } from '../../tools/chart/render-chart.ts';
import { WEBHOOK_PROGRAM } from '../../webhook/options.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const PAGE = read('docs/security.md');
const PROGRAMS: readonly SettingsProgram[] = [
  AGENT_PROGRAM,
  IPAMD_PROGRAM,
  SCHEDULER_PROGRAM,
  WEBHOOK_PROGRAM,
  CCM_PROGRAM,
];
const PORT = /(?<![\w.])616(?:77|[89]\d)(?!\d)/g;
const PRODUCT = [
  'agent',
  'cli',
  'cloud',
  'cni-plugins',
  'dataplane',
  'inspection',
  'ipamd',
  'kube',
  'netlink',
  'runtime',
  'sysctl',
];

type Row = {
  readonly program: string;
  readonly flag: string;
  readonly preset: string;
  readonly manifests: string;
  readonly code: string;
};

const codeOf = (cell: string): string => cell.replaceAll('`', '').trim();
const isAddress = ({ value }: { readonly value: { readonly metavar: string } }): boolean =>
  value.metavar === 'HOST:PORT';

/** The rows of the first table: what listens. */
const ROWS: readonly Row[] = [...PAGE.matchAll(/^\| `(tke-[a-z-]+)` \| `--([a-z-]+)` \|(.*)\|(.*)\|(.*)\|$/gm)].map(
  ([, program = '', flag = '', preset = '', manifests = '', code = '']) => ({
    ...{ program, flag, manifests: codeOf(manifests), code: codeOf(code) },
    preset: codeOf(preset) === 'off' ? '' : codeOf(preset),
  }),
);
/** The first cells of the second table: who may call. */
const CALLED = [...PAGE.matchAll(/^\| ([^|`-][^|]*|`[^|]*\.sock`) \| [^|]+ \| [^|]+ \| [^|]+ \|$/gm)]
  .map(([, cell = '']) => codeOf(cell))
  .filter((cell) => /\d{5}|\.sock/.test(cell));

const portsIn = (text: string): readonly string[] => [...new Set(text.match(PORT) ?? [])].toSorted();

/** Every manifest and template, without the prose of comments. */
const MANIFESTS: readonly (readonly [path: string, text: string])[] = [
  ...globSync('conf/kubernetes/**/*.yaml', { cwd: ROOT }),
  'conf/monitoring/pod-monitors.yaml',
]
  .map((path): readonly [string, string] => [path, read(path)])
  .concat([...renderChart()].filter(([path]) => path.startsWith('templates/')))
  .map(([path, text]) => [path, text.replaceAll(/#.*$/gm, '')]);

test('docs/security.md: has a row for each address that a setting gives a program, with its default', (t) => {
  const settings = PROGRAMS.flatMap(({ name, options }) =>
    Object.values(options)
      .filter(isAddress)
      .map(({ flag, defaultText }) => `${name} --${flag} ${defaultText}`),
  );
  const written = ROWS.filter(({ flag }) => flag.endsWith('-address')).map(
    ({ program, flag, preset }) => `${program} --${flag} ${preset}`,
  );
  t.deepEqual(written.toSorted(), settings.toSorted());
});

test('docs/security.md: has the sockets of the agent, with their names', (t) => {
  const { socket } = AGENT_PROGRAM.options;
  t.is(ROWS.find(({ flag }) => flag === socket.flag)?.preset, socket.defaultText);
  const names = [...read('agent/join-cluster.ts').matchAll(/socketName: '([^']+)'/g)].map(([, name]) => name);
  t.true(names.length > 0);
  const { flag } = AGENT_PROGRAM.options.kubeletDir;
  t.is(ROWS.find((row) => row.flag === flag)?.preset, names.map((name) => `device-plugins/${name}`).join(', '));
});

test('docs/security.md: each port of a manifest or template is in both tables, and each row is somewhere', (t) => {
  const inManifests = portsIn(MANIFESTS.map(([, text]) => text).join('\n'));
  const listening = portsIn(ROWS.map(({ preset, manifests }) => `${preset} ${manifests}`).join('\n'));
  const offByDefault = ['61677'];
  t.deepEqual(listening, [...inManifests, ...offByDefault].toSorted());
  t.deepEqual(portsIn(CALLED.join('\n')), listening);
  const sockets = CALLED.filter((cell) => cell.endsWith('.sock'));
  t.deepEqual(sockets, ['/run/tke-eni/agent.sock', 'device-plugins/*.sock']);
});

test('docs/security.md: says on which address each program listens in the manifests and in the chart', (t) => {
  for (const { program, flag, preset, manifests } of ROWS.filter(({ flag: name }) => name.endsWith('-address'))) {
    const [port] = portsIn(`${preset} ${manifests}`);
    // A choice of the chart is `{{ if … }}0.0.0.0{{ else }}127.0.0.1{{ end }}:61680`.
    const given = MANIFESTS.flatMap(([, text]) => [...text.matchAll(new RegExp(`--${flag}=(.*):${port}$`, 'gm'))])
      .flatMap(([, host = '']) =>
        host
          .replaceAll(/\{\{[^}]*\}\}/g, ' ')
          .trim()
          .split(/ +/),
      )
      .map((host) => `${host}:${port}`);
    const written = manifests.startsWith('off') ? [] : (manifests.match(/[\d.]+:\d{5}/g) ?? []);
    t.deepEqual([...new Set(given)].toSorted(), [...new Set(written)].toSorted(), `${program} --${flag}`);
  }
});

test('docs/security.md: names each file of the product that listens, and no other', (t) => {
  const listening = [...PRODUCT, 'scheduler', 'webhook', 'cloud-controller-manager']
    .flatMap((folder) => globSync(`${folder}/**/*.ts`, { cwd: ROOT }))
    .filter((path) => path !== 'runtime/listen-on.ts')
    .filter((path) => /\.listen\([^)]|\.bindAsync\(|\bcreateSocket\(|\blistenOn\(/.test(read(path)));
  t.deepEqual([...new Set(listening)].toSorted(), [...new Set(ROWS.map(({ code }) => code))].toSorted());
});
