/** The command as people run it: kubeconfig, keys, HTTP, exit codes. */
import { writeFileSync } from 'node:fs';
import test from 'ava';
import { createTencentCloud } from '../../../../cloud/tencent/tencent-cloud.ts';
import { listenerNameOf, ownerOf } from '../../../../cloud-controller-manager/balancers/balancer-owner.ts';
import { NODES, SERVICES } from '../../../../kube/resource-types.ts';
import { systemClock } from '../../../../runtime/clock.ts';
import { connectInProcess } from '../../../../sim/kube-api/in-process.ts';
import { renderKubeconfig } from '../../../../sim/kube-api/kubeconfig.ts';
import { startKubeApi } from '../../../../sim/kube-api/start-kube-api.ts';
import { CloudHost } from '../../../../sim/vpc/api/host.ts';
import { CloudServer } from '../../../../sim/vpc/api/http-server.ts';
import { createInProcessApi } from '../../../../sim/vpc/api/in-process.ts';
import { createTempDir } from '../../../support/temp-dir.ts';
import { runCaptured } from '../../agent/captured.ts';
import { PERSON } from './lb-scene.ts';

const CLUSTER = 'cls-runlb001';
const VPC = 'vpc-runlb001';
const INSTANCE = { instanceId: 'ins-runlb001', cores: 4, subnetId: 'subnet-a' } as const;
const METADATA = { name: 'web', namespace: 'default' } as const;

test('lb: shows and plans, follows an address, and says by its exit code what is wrong', async (t) => {
  const files = createTempDir('run-lb');
  const kube = await startKubeApi();
  const subnets = [{ subnetId: 'subnet-a', zone: 'ap-guangzhou-3', cidr: '10.0.2.0/24' }];
  const host = new CloudHost({ vpcId: VPC, subnets }, systemClock, { taskMs: [1, 1] });
  const server = new CloudServer(host);
  await server.start();
  t.teardown(async () => {
    await kube.close();
    await server.close();
    files.close();
  });
  const admin = connectInProcess(kube.api, { clock: systemClock }).client({ userAgent: 'test' });
  const spec = { providerID: 'tencentcloud:///ap-guangzhou-3/ins-runlb001' };
  const status = { addresses: [{ type: 'InternalIP', address: '10.0.2.77' }] };
  await admin.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' }, spec, status });
  const service = await admin.create(SERVICES, {
    ...{ apiVersion: 'v1', kind: 'Service', metadata: METADATA },
    spec: { type: 'LoadBalancer', ports: [{ port: 80, nodePort: 30_080 }] },
  });
  const { uid = '' } = service.metadata;
  const { secretId, secretKey } = server.credentials.add('AKIDrunlb', 'secret-0');
  const kubeconfig = files.join('kubeconfig');
  writeFileSync(kubeconfig, renderKubeconfig({ url: kube.url }));
  const env = { TENCENTCLOUD_SECRET_ID: secretId, TENCENTCLOUD_SECRET_KEY: secretKey };
  const cloud = [`--kubeconfig=${kubeconfig}`, '--region=ap-guangzhou', `--endpoint=http://${server.endpoint}`];
  const run = (...argv: readonly string[]) => runCaptured(['lb', ...argv, ...cloud], { env });

  const none = await run();
  t.is(none.code, 1, none.stderr);
  t.regex(none.stdout, /default\/web {2}none/);
  t.regex((await run('--plan')).stderr, /give --cluster-id/);
  const given = ['--plan', `--cluster-id=${CLUSTER}`, `--vpc-id=${VPC}`];
  t.regex((await run(...given)).stdout, /1\. create: no load balancer has the tag of the Service/);

  const { loadBalancers, listeners, targets } = createTencentCloud({
    api: createInProcessApi(host),
    clock: systemClock,
    random: () => 0.5,
  });
  const tags = { 'tke-eni-owner': ownerOf(CLUSTER, uid, 'service'), 'tke-clusterId': CLUSTER };
  const task = await loadBalancers.create({ type: 'OPEN', name: 'web', vpcId: VPC, tags }, PERSON);
  const outcome = await loadBalancers.settle(task, PERSON);
  const [id = ''] = outcome.kind === 'done' ? outcome.loadBalancerIds : [];
  const name = listenerNameOf(CLUSTER, uid, 'service');
  const settings = { scheduler: 'WRR', sessionSeconds: 0 };
  const made = await listeners.create(id, { protocol: 'TCP', ports: [{ port: 80, name }], settings }, PERSON);
  await loadBalancers.settle(made.task, PERSON);

  const bare = await run(`--cluster-id=${CLUSTER}`, '-o', 'json');
  t.is(bare.code, 1);
  const [row] = JSON.parse(bare.stdout).services;
  t.like(row, { service: 'default/web', state: 'ready', loadBalancerId: id });
  t.deepEqual(row.problems, ['TCP/80: no target gets connections']);
  t.regex((await run(...given)).stdout, /1\. register: backends that are not registered\n +TCP\/80 10\.0\.2\.77:30080/);
  const [address = ''] = row.addresses;
  t.regex(
    (await run(`${address}:80`, `--cluster-id=${CLUSTER}`)).stdout,
    /no target gets connections: the client gets no answer/,
  );
  t.regex((await run(`${address}:81`, `--cluster-id=${CLUSTER}`)).stderr, /no load balancer of a Service listens at/);
  t.is((await run('nonsense')).code, 64);
  // What explain asks is what lb asks; each of its errors has the next step.
  const explain = (at: string, ...more: readonly string[]) => runCaptured(['explain', at, ...more, ...cloud], { env });
  const asker = '--from=10.0.0.9';
  t.regex(
    (await explain('10.9.9.9:80', asker)).stderr,
    /no load balancer of a Service has 10\.9\.9\.9\n +next: tke-eni lb/,
  );
  const deaf = await explain(`${address}:81`, asker, `--cluster-id=${CLUSTER}`);
  t.regex(deaf.stderr, /does not listen at port 81\n +next: it listens at TCP\/80/);
  t.is(deaf.code, 2);
  const anonymous = await explain(`${address}:80`);
  t.regex(anonymous.stderr, /who connects to .*--from is missing\n +next: name a client/);
  t.is(anonymous.code, 64);
  t.regex((await explain(`${address}:80`, asker, '--to=10.0.0.1')).stderr, /--to is what a Pod sends to/);
  t.regex((await explain(`${address}:80`, '--from=fd00::1')).stderr, /load balancers of Services have IPv4 clients/);
  const away = [`--kubeconfig=${files.join('none')}`, ...cloud.slice(1)];
  t.regex((await runCaptured(['explain', `${address}:80`, asker, ...away], { env })).stderr, /next: give --kubeconfig/);
  const strange = { ...env, TENCENTCLOUD_SECRET_KEY: 'wrong' };
  const refused = await runCaptured(['explain', `${address}:80`, asker, ...cloud], { env: strange });
  t.regex(refused.stderr, /the cloud did not answer.*\n +next: set TENCENTCLOUD_SECRET_ID/);
  t.is(refused.code, 2);
  t.regex((await run('--from=nobody')).stderr, /--from: "nobody" is no IPv4 address/);

  const [listener] = await listeners.list(id, PERSON);
  const target = {
    listenerId: listener?.listenerId ?? '',
    ip: '10.0.2.77',
    instanceId: 'ins-runlb001',
    port: 30_080,
    weight: 10,
  };
  host.model.state.addInstance({ ...INSTANCE, primary: { mac: '20:90:6f:00:00:07', ip: target.ip } });
  await targets.register(id, [target], PERSON);
  host.model.state.setSecurityRules('sg-default0', []);
  const from = [`--cluster-id=${CLUSTER}`, '--from=203.0.113.9'];
  t.regex(
    (await run('default/web', ...from)).stdout,
    /sg-default0 of [\w-]+ does not admit the client 203\.0\.113\.9 to TCP 30080/,
  );
  host.faults.add({
    fault: { kind: 'error', code: 'UnauthorizedOperation' },
    actions: ['DescribeSecurityGroupPolicies'],
  });
  const blind = await run('default/web', ...from);
  t.regex(blind.stderr, /security groups were not read: .*grant vpc:DescribeSecurityGroupPolicies/s);
  t.regex(blind.stdout, /10\.0\.2\.77:30080/);
  t.notRegex(blind.stdout, /sg-default0/);

  const keyless = await runCaptured(['lb', ...cloud], { env: { ...env, TENCENTCLOUD_SECRET_KEY: 'wrong' } });
  t.is(keyless.code, 2);
  t.regex(keyless.stdout, /default\/web {2}unknown/);
});
