import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { Child } from '../../sim/support/child.ts';
import { childEnv } from '../../sim/support/child-env.ts';
import { tryRun } from '../../sim/support/run.ts';
import { buildExecutables } from '../../tools/build.ts';
import { executablePath } from '../support/executables.ts';
import { freePort } from '../support/free-port.ts';
import { waitUntil } from '../support/wait-until.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const dir = mkdtempSync(join(tmpdir(), 'tke-test-start-'));
const CLUSTER = '--clusterid=cls-start001';
const REGION = '--region=ap-guangzhou';
const NO_METRICS = '--metrics-address=';
const EX_CONFIG = 78;

test.before(async () => {
  await buildExecutables(['tke-eni-ipamd', 'tke-eni-agent']);
});
test.after.always(() => rmSync(dir, { recursive: true, force: true }));

function fileOf(name: string, text: string): string {
  const path = join(dir, name);
  writeFileSync(path, text);
  return path;
}

const kubeconfig = (server: string): string => `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "${server}"}}]
users: [{name: u, user: {token: x}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`;
const DEAD = fileOf('dead.yaml', kubeconfig('http://127.0.0.1:9'));

/** An environment in which nothing is set but what is given: no Pod's, no cloud's. */
const env = (more: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> => ({
  PATH: childEnv()['PATH'] ?? '',
  ...more,
});

const refuses = test.macro(
  async (t, program: 'ipamd' | 'agent', flags: readonly string[], code: number, says: RegExp) => {
    const argv = [executablePath(`tke-eni-${program}`), ...flags];
    const ended = await tryRun(argv, { env: env(), timeoutMs: 60_000 });
    t.is(ended.code, code, ended.stderr + ended.stdout);
    const lines = ended.stderr.trim().split('\n');
    t.is(lines.length, 1, ended.stderr);
    t.regex(lines[0] ?? '', says);
  },
);

test.serial(
  'ipamd: names flags that are not, and what is missing',
  refuses,
  'ipamd',
  ['--nonsense'],
  EX_CONFIG,
  /^settings: --nonsense: .*--help lists them.*--clusterid: expected/,
);
test.serial(
  'ipamd: names every setting that is wrong',
  refuses,
  'ipamd',
  [CLUSTER, '--ip-min-warm-target=many', '--protocol=ftp'],
  EX_CONFIG,
  /^settings: --protocol: expected one of .*; --ip-min-warm-target: expected a whole number/,
);
test.serial(
  'ipamd: says how to reach the API server outside of a Pod',
  refuses,
  'ipamd',
  [CLUSTER, REGION, NO_METRICS],
  EX_CONFIG,
  /^settings: --kubeconfig: expected a kubeconfig, or --master, or .*KUBERNETES_SERVICE_HOST/,
);
test.serial(
  'ipamd: names a kubeconfig that is not',
  refuses,
  'ipamd',
  [CLUSTER, REGION, NO_METRICS, `--kubeconfig=${dir}/none`],
  EX_CONFIG,
  /^settings: --kubeconfig: expected a file that can be read, .*\/none, got ENOENT/,
);
test.serial(
  'ipamd: names the place in a kubeconfig that is no YAML',
  refuses,
  'ipamd',
  [CLUSTER, REGION, NO_METRICS, `--kubeconfig=${fileOf('bad.yaml', 'a: [')}`],
  EX_CONFIG,
  /bad\.yaml: line 1, column \d+: expected valid YAML/,
);
test.serial(
  'ipamd: names what a kubeconfig lacks',
  refuses,
  'ipamd',
  [CLUSTER, REGION, NO_METRICS, `--kubeconfig=${fileOf('empty.yaml', 'kind: Config')}`],
  EX_CONFIG,
  /empty\.yaml: current-context: expected the name of one of the contexts; there are none/,
);
test.serial(
  'ipamd: says what to do where no region is known',
  refuses,
  'ipamd',
  [CLUSTER, NO_METRICS, `--kubeconfig=${DEAD}`, '--metadata-url=http://127.0.0.1:9'],
  1,
  /^http:\/\/127\.0\.0\.1:9\/placement\/region: .*(?:ECONNREFUSED|bad port).*; set --region to the region of the VPC/,
);
test.serial(
  'ipamd: names an address that it cannot listen on',
  refuses,
  'ipamd',
  [CLUSTER, REGION, `--kubeconfig=${DEAD}`, '--metrics-address=192.0.2.1:1'],
  EX_CONFIG,
  /^settings: --metrics-address: expected an address and port of this machine .*, got 192\.0\.2\.1:1: EADDRNOTAVAIL/,
);
test.serial(
  'agent: names flags that are not',
  refuses,
  'agent',
  ['--nonsense'],
  EX_CONFIG,
  /^settings: --nonsense: .*--help lists them/,
);
test.serial(
  'agent: wants its name where supply comes from the cluster',
  refuses,
  'agent',
  ['--supply-source=cluster'],
  EX_CONFIG,
  /^settings: --node-name: expected the name of this node/,
);
test.serial('ipamd: ends after each of twelve wrong starts', async (t) => {
  const argv = [executablePath('tke-eni-ipamd'), '--no-such-flag'];
  // Three at a time: threads of V8 have to wait for a core.
  for (let round = 0; round < 4; round++) {
    const ended = await Promise.all([1, 2, 3].map(() => tryRun(argv, { env: env(), timeoutMs: 60_000 })));
    t.deepEqual(
      ended.map(({ code }) => code),
      [78, 78, 78],
    );
  }
});

test.serial('ipamd: goes on without API server and key, and says of each what to look at', async (t) => {
  const flags = [
    CLUSTER,
    REGION,
    `--metrics-address=127.0.0.1:${await freePort()}`,
    `--kubeconfig=${DEAD}`,
    '--credentials=env',
  ];
  const child = new Child([process.execPath, join(ROOT, 'ipamd', 'main.ts'), ...flags], { env: env() });
  t.teardown(() => child.stop('SIGKILL').then(() => undefined));
  const text = await waitUntil(
    () => /API server does not answer/.test(child.stdout) && /no key to the cloud/.test(child.stdout) && child.stdout,
    { what: 'both lines', timeoutMs: 60_000, explain: () => child.stdout + child.stderr },
  );
  t.regex(text, /the API server does not answer, look at --kubeconfig or --master/);
  t.regex(text, /there is no key to the cloud yet, look at --credentials/);
  t.regex(text, /TENCENTCLOUD_SECRET_ID and TENCENTCLOUD_SECRET_KEY not set/);
  const address = /"address":"([^"]+)"/.exec(text)?.[1] ?? '';
  const ready = await fetch(`http://${address}/readyz`);
  t.is(ready.status, 503);
  t.regex(await ready.text(), /the API server does not answer: .*ECONNREFUSED/);
  t.is((await fetch(`http://${address}/healthz`)).status, 200);
});

test.serial('ipamd: names an address that another process listens on', async (t) => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => void server.close());
  const bound = server.address();
  const port = typeof bound === 'object' && bound !== null ? bound.port : 0;
  const flags = [CLUSTER, REGION, `--kubeconfig=${DEAD}`, `--metrics-address=127.0.0.1:${port}`];
  const ended = await tryRun([process.execPath, join(ROOT, 'ipamd', 'main.ts'), ...flags], {
    env: env(),
    timeoutMs: 60_000,
  });
  t.is(ended.code, EX_CONFIG);
  t.regex(ended.stderr, /^settings: --metrics-address: .*EADDRINUSE\n$/);
});
