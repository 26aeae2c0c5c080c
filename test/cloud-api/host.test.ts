import test from 'ava';
import { systemClock } from '../../runtime/clock.ts';
import { FaultScript } from '../../sim/vpc/api/faults.ts';
import { CloudHost } from '../../sim/vpc/api/host.ts';
import { CloudServer } from '../../sim/vpc/api/http-server.ts';
import { attachedEni, contextOf, createdEni, inProcess, SPEC } from '../cloud/cloud-fixture.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

test("CloudHost: refuses calls beyond an API's limit within a second, and no other API's", async (t) => {
  const clock = new VirtualClock();
  const host = new CloudHost(SPEC, clock);
  const codes = async (action: string, count: number) => {
    const answers = await Promise.all(Array.from({ length: count }, () => host.serve('vpc', action, {})));
    return answers.filter((answer) => answer.kind === 'error' && answer.code === 'RequestLimitExceeded').length;
  };
  t.is(await codes('DescribeSubnets', 25), 5);
  t.is(await codes('DescribeNetworkInterfaces', 101), 1);
  await clock.advance(1_000);
  t.is(await codes('DescribeSubnets', 20), 0);
});

test('FaultScript: the same seed and requests give the same faults; rules end by count, time and switch', (t) => {
  const draw = (seed: number) => {
    const script = new FaultScript(seed, [{ fault: { kind: 'reset' }, probability: 0.3 }]);
    return Array.from({ length: 50 }, () => script.draw('A', 0).length).join('');
  };
  t.is(draw(1), draw(1));
  t.not(draw(1), draw(2));
  const script = new FaultScript(1, [
    { fault: { kind: 'reset' }, times: 2, actions: ['Describe*'] },
    { fault: { kind: 'hang' }, fromMs: 100, untilMs: 200 },
  ]);
  t.deepEqual(
    ['Create', 'DescribeA', 'DescribeB', 'DescribeC'].map((action) => script.draw(action, 0).length),
    [0, 1, 1, 0],
  );
  t.deepEqual(
    [99, 100, 199, 200].map((ms) => script.draw('X', ms).length),
    [0, 1, 1, 0],
  );
  const off = script.add({ fault: { kind: 'reset' } });
  t.is(script.draw('X', 0).length, 1);
  off();
  t.is(script.draw('X', 0).length, 0);
});

test('CloudHost: the same seed gives the same ids, addresses and durations', async (t) => {
  const run = async () => {
    const { cloud, host, wait } = await inProcess({ seed: 5, latencyMs: [1, 50] });
    host.faults.add({ fault: { kind: 'reset', after: true }, probability: 0.3, actions: ['Describe*'] });
    const eniId = await wait(attachedEni(cloud, 'same', 'ins-cores002', 3));
    return JSON.stringify({ eniId, seen: host.seen, ips: [...host.model.state.eni(eniId).ips.keys()] });
  };
  t.is(await run(), await run());
});

test('CloudHost: a stale describe shows what was, and settling waits for what is', async (t) => {
  const { cloud, host, wait } = await inProcess({ taskMs: [1_000, 1_000] });
  const eniId = await wait(attachedEni(cloud, 'stale', 'ins-cores002'));
  await wait(host.clock.sleep(5_000));
  const task = await wait(cloud.enis.detach(eniId, 'ins-cores002', contextOf()));
  const off = host.faults.add({ fault: { kind: 'stale', ms: 2_500 }, actions: ['DescribeNetworkInterfaces'] });
  const [before] = await wait(cloud.enis.describe([eniId], contextOf()));
  t.like(before, { state: 'AVAILABLE', attachment: { instanceId: 'ins-cores002' } });
  t.deepEqual(await wait(cloud.tasks.settle(task, contextOf())), { kind: 'done', isUnseen: true });
  off();
  const [after] = await wait(cloud.enis.describe([eniId], contextOf()));
  t.is(after?.attachment, undefined);
});

test('CloudHost: a describe with half of its total is no answer', async (t) => {
  const { cloud, host, wait } = await inProcess();
  const { instanceId } = [...host.model.state.instances.values()][0] ?? { instanceId: '' };
  const describe = () => wait(cloud.instances.describe([instanceId], contextOf()));
  host.faults.add({ fault: { kind: 'partial' }, actions: ['DescribeInstances'], times: 1 });
  await t.throwsAsync(describe(), { code: 'BAD_ANSWER' });
  t.like(await describe(), [{ instanceId }]);
});

test('CloudHost: a stale describe lacks what is new, and lists what is gone', async (t) => {
  const { cloud, host, wait } = await inProcess({ taskMs: [1_000, 1_000] });
  const eniId = await wait(createdEni(cloud, 'young'));
  const sees = async () => {
    const { enis } = await wait(cloud.enis.sweep({ vpcId: SPEC.vpcId }, contextOf()));
    return enis.find((eni) => eni.eniId === eniId);
  };
  host.faults.add({ fault: { kind: 'stale', ms: 3_000 }, actions: ['Describe*'] });
  t.is(await sees(), undefined);
  await wait(host.clock.sleep(5_000));
  t.like(await sees(), { eniId, state: 'AVAILABLE' });
  await wait(cloud.enis.delete(eniId, contextOf()));
  await wait(host.clock.sleep(2_000));
  await host.catchUp();
  t.false(host.model.state.enis.has(eniId));
  t.like(await sees(), { eniId, state: 'AVAILABLE' });
  await wait(host.clock.sleep(5_000));
  t.is(await sees(), undefined);
});

test('CloudServer: the metadata service tells an instance of its interfaces', async (t) => {
  const host = new CloudHost(SPEC, systemClock);
  host.model.state.addInstance({ instanceId: 'ins-meta', cores: 2, subnetId: 'subnet-zone4000' });
  const server = new CloudServer(host);
  await server.start();
  t.teardown(() => server.close());
  const get = async (path: string) => {
    const answer = await fetch(`${server.metadataUrl('ins-meta')}/${path}`);
    return answer.status === 200 ? await answer.text() : answer.status;
  };
  const mac = await get('mac');
  t.is(await get('instance-id'), 'ins-meta');
  t.is(await get('placement/zone'), 'ap-guangzhou-4');
  t.is(await get('placement/region'), 'ap-guangzhou');
  t.is(await get('network/interfaces/macs/'), `${mac}/`);
  t.is(await get(`network/interfaces/macs/${mac}/primary-local-ipv4`), '10.2.0.2');
  t.is(await get(`network/interfaces/macs/${mac}/subnet-id`), 'subnet-zone4000');
  t.is(await get(`network/interfaces/macs/${mac}/local-ipv4s/10.2.0.2/gateway`), '10.2.0.1');
  t.is(await get(`network/interfaces/macs/${mac}/local-ipv4s/10.2.0.2/subnet-mask`), '255.255.255.0');
  t.is(await get('cam/security-credentials/'), 404);
  t.is(await get('network/interfaces/macs/00:00:00:00:00:00/vpc-id'), 404);
});

test('CloudServer: refuses unknown keys, other regions and other versions', async (t) => {
  const server = new CloudServer(new CloudHost(SPEC, systemClock));
  await server.start();
  t.teardown(() => server.close());
  const codeOf = async (headers: Readonly<Record<string, string>>) => {
    const answer = await fetch(`http://${server.endpoint}/`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-tc-action': 'DescribeSubnets', ...headers },
      body: '{}',
    });
    const body: unknown = await answer.json();
    return JSON.stringify(body).match(/"Code":"([^"]+)"/)?.[1];
  };
  const version = { 'x-tc-version': '2017-03-12' };
  const region = { 'x-tc-region': 'ap-guangzhou' };
  const authorization = `TC3-HMAC-SHA256 Credential=AKIDnobody/2026-01-01/vpc/tc3_request, SignedHeaders=content-type;host, Signature=${'0'.repeat(64)}`;
  t.is(await codeOf({}), 'NoSuchVersion');
  t.is(await codeOf(version), 'MissingParameter');
  t.is(await codeOf({ ...version, 'x-tc-region': 'moon' }), 'UnsupportedRegion');
  t.is(await codeOf({ ...version, ...region }), 'AuthFailure.SignatureFailure');
  t.is(await codeOf({ ...version, ...region, authorization }), 'AuthFailure.SecretIdNotFound');
});
