/** What programs say without a key to the cloud: another thing than of a key that the cloud refuses. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { classifyError } from '../../../cloud/classify-error.ts';
import type { CallObserver } from '../../../cloud/tencent/caller.ts';
import { systemHttpGet } from '../../../cloud/tencent/credentials/fetch-sources.ts';
import { createRotatingSource } from '../../../cloud/tencent/credentials/rotating.ts';
import { openCloud } from '../../../cloud/tencent/open-cloud.ts';
import { createCcmMetrics } from '../../../cloud-controller-manager/observability/metrics.ts';
import { createIpamdMetrics } from '../../../ipamd/observability/metrics.ts';
import type { CloudRights } from '../../../observability/cloud-rights.ts';
import type { ProblemRegistry } from '../../../observability/problem-registry.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import { CloudHost } from '../../../sim/vpc/api/host.ts';
import { CloudServer } from '../../../sim/vpc/api/http-server.ts';
import { CLOUD, ipamdConfig } from '../../ipamd/shell/shell-scene.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const PROGRAMS = ['tke-eni-ipamd', 'tke-cloud-controller-manager'] as const;
type Program = (typeof PROGRAMS)[number];
const NOBODY = '--metadata-url=http://127.0.0.1:1';

/** A program with its metrics and a cloud that takes the key AKIDgood. */
async function start(t: ExecutionContext, program: Program, isHeard = true) {
  const dir = mkdtempSync(join(tmpdir(), 'tke-test-no-key-'));
  const host = new CloudHost(CLOUD, systemClock, { seed: 4 });
  const server = new CloudServer(host);
  await server.start();
  server.credentials.add('AKIDgood', 'good-secret');
  t.teardown(async () => {
    await server.close();
    rmSync(dir, { recursive: true, force: true });
  });
  const metrics: {
    readonly cloud: CallObserver;
    problems: ProblemRegistry;
    cloudRights: CloudRights;
  } =
    program === 'tke-eni-ipamd'
      ? createIpamdMetrics(systemClock, { release: 'test' })
      : createCcmMetrics(systemClock, { release: 'test' });
  const said: string[] = [];
  const hear = (): void => {
    metrics.cloudRights.listener = ({ kind, message }) => said.push(`${kind}: ${message}`);
  };
  if (isHeard) hear();
  /** Describes the subnets with settings and variables. */
  const call = async (flags: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<void> => {
    const config = ipamdConfig(`--endpoint=${server.endpoint}`, '--protocol=http', ...flags);
    const deps = { clock: systemClock, random: seededRandom(1), env, get: systemHttpGet, sessionName: program };
    const { cloud } = openCloud(config, 'ap-guangzhou', { ...deps, observer: metrics.cloud });
    const { signal } = new AbortController();
    await cloud.subnets.sweep(CLOUD.vpcId, { priority: 'pod', owner: 't', signal, timeoutMs: 9_000 });
  };
  return {
    dir,
    host,
    call,
    hear,
    said,
    problems: () => metrics.problems.samples().map(({ kind, name }) => `${kind} ${name}`),
  };
}

for (const program of PROGRAMS) {
  test(`${program}: without a key it names the Secret, its entries, and the restart`, async (t) => {
    const { call, said, problems } = await start(t, program);
    const error = await t.throwsAsync(call([NOBODY]));
    const cure = `Make the Secret kube-system/tke-eni-ipamd-credentials with the entries secretId and secretKey, then "kubectl -n kube-system rollout restart deployment/${program}", as they are read at the start`;
    t.true(error.message.includes(cure), error.message);
    t.is(said.length, 1);
    t.regex(
      said[0] ?? '',
      /^CredentialsMissing: .* has no key to the cloud: no credentials: environment: TENCENTCLOUD_SECRET_ID and TENCENTCLOUD_SECRET_KEY not set/,
    );
    t.true(said[0]?.includes(cure), said[0]);
    t.deepEqual(problems(), ['CredentialsMissing key']);
  });

  test(`${program}: a key that is refused after none was there, and none after it, are said as such`, async (t) => {
    const { call, said, problems } = await start(t, program);
    await t.throwsAsync(call(['--credentials=env']));
    await t.throwsAsync(
      call(['--credentials=env'], { TENCENTCLOUD_SECRET_ID: 'AKIDbad', TENCENTCLOUD_SECRET_KEY: 'x' }),
    );
    t.deepEqual(problems(), ['CredentialsRefused key']);
    await t.throwsAsync(call(['--credentials=env']));
    t.deepEqual(
      said.map((one) => one.split(':')[0]),
      ['CredentialsMissing', 'CredentialsRefused', 'CredentialsMissing'],
    );
    t.regex(said[1] ?? '', /does not accept the key: .*AuthFailure/);
    await call(['--credentials=env'], { TENCENTCLOUD_SECRET_ID: 'AKIDgood', TENCENTCLOUD_SECRET_KEY: 'good-secret' });
    t.deepEqual(problems(), []);
  });
}

test('a source that is read again needs no restart, and is named', async (t) => {
  const { dir, call, said } = await start(t, 'tke-eni-ipamd');
  const file = join(dir, 'key.json');
  writeFileSync(file, '{}');
  await t.throwsAsync(call(['--credentials=file', `--credentials-file=${file}`]));
  await t.throwsAsync(call(['--credentials=role', NOBODY]));
  await t.throwsAsync(call(['--credentials=oidc']));
  const [ofFile = ''] = said;
  t.regex(ofFile, /key\.json.*Write secretId and secretKey into .*key\.json.*without a restart/);
  t.is(said.length, 1, 'once, until a call succeeds');
});

test('who begins to listen later hears of it too', async (t) => {
  const { call, hear, said } = await start(t, 'tke-cloud-controller-manager', false);
  await t.throwsAsync(call(['--credentials=env']));
  t.deepEqual(said, []);
  hear();
  t.is(said.length, 1);
});

test('a key that STS refuses is one that is refused', async (t) => {
  const { call, said } = await start(t, 'tke-eni-ipamd');
  const env = { TENCENTCLOUD_SECRET_ID: 'AKIDbad', TENCENTCLOUD_SECRET_KEY: 'x' };
  await t.throwsAsync(call(['--credentials=env', '--sts-role-arn=qcs::cam::uin/100000000001:roleName/ipamd'], env));
  t.regex(said.join('\n'), /^CredentialsRefused: the cloud does not accept the key: .*AuthFailure/);
});

const ROLE = '--sts-role-arn=qcs::cam::uin/100000000001:roleName/ipamd';
const GOOD = { TENCENTCLOUD_SECRET_ID: 'AKIDgood', TENCENTCLOUD_SECRET_KEY: 'good-secret' };

test('a role that STS does not let the key assume is said with the action, and not as a missing key', async (t) => {
  const { call, said, problems, host } = await start(t, 'tke-eni-ipamd');
  host.faults.add({ fault: { kind: 'error', code: 'UnauthorizedOperation' }, actions: ['AssumeRole'] });
  const error = await t.throwsAsync(call(['--credentials=env', ROLE], GOOD));
  t.regex(error.message, /AssumeRole: .*UnauthorizedOperation/);
  t.is(said.length, 1);
  t.regex(
    said[0] ?? '',
    /^CredentialsRefused: .*AssumeRole.*Grant the action sts:AssumeRole on qcs::cam::.*roleName\/ipamd/,
  );
  t.deepEqual(problems(), ['CredentialsRefused key']);
  host.faults.clear();
  await call(['--credentials=env', ROLE], GOOD);
  t.deepEqual(problems(), []);
});

test('STS that throttles for a moment is tried again, and no key is missing', async (t) => {
  const { call, said, problems, host } = await start(t, 'tke-eni-ipamd');
  host.faults.add({ fault: { kind: 'error', code: 'RequestLimitExceeded' }, actions: ['AssumeRole'], times: 2 });
  await call(['--credentials=env', ROLE], GOOD);
  t.deepEqual([said, problems()], [[], []]);
});

test('a metadata server that fails for a moment is no missing key; one that says there is no role is', async (t) => {
  const answers = [503, 404];
  const metadata = createServer((_, answer) => void answer.writeHead(answers[0] ?? 404).end('later'));
  await new Promise<void>((resolve) => void metadata.listen(0, '127.0.0.1', resolve));
  t.teardown(() => void metadata.close());
  const url = `--metadata-url=http://127.0.0.1:${(metadata.address() as AddressInfo).port}`;
  const { call, said } = await start(t, 'tke-cloud-controller-manager');
  const error = await t.throwsAsync(call([url]));
  t.regex(error.message, /HTTP 503/);
  t.notRegex(error.message, /rollout restart/);
  t.deepEqual(said, []);
  answers.shift();
  await t.throwsAsync(call([url]));
  t.regex(said.join(), /^CredentialsMissing: .*carries no role/);
});

test('a source that does not say whether it has a key counts as one without after a minute, STS never does', async (t) => {
  const clock = new VirtualClock();
  const said: string[] = [];
  const settings = { cure: 'Make a Secret', onFailure: (kind: string, text: string) => said.push(`${kind}: ${text}`) };
  const timeout = classifyError({ code: 'TIMEOUT', action: 'AssumeRole', text: 'no answer in time' });
  const silent = createRotatingSource(clock, () => Promise.reject(new Error('no answer')), settings);
  const role = createRotatingSource(clock, () => Promise.reject(timeout), settings);
  for (let minute = 0; minute < 2; minute++) {
    await t.throwsAsync(silent.get(), { message: /CREDENTIALS.*no answer/ });
    const error = await t.throwsAsync(role.get());
    t.like(error, { code: 'TIMEOUT', action: 'AssumeRole', retry: 'backoff' });
    if (minute === 0) t.deepEqual(said, []);
    await clock.advance(60_000);
  }
  t.deepEqual(said, ['CredentialsMissing: no answer. Make a Secret']);
});
