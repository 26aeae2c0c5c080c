import { Client, credentials } from '@grpc/grpc-js';
import test, { type ExecutionContext } from 'ava';
import { OUTCOME } from '../../../agent/api/messages.ts';
import { type RunReplyInit, type RunRequest, SOCKET_SERVICE } from '../../../agent/api/service.ts';
import { type AgentUseCases, agentImplementation } from '../../../agent/server/agent-service.ts';
import { serveGrpc } from '../../../agent/server/grpc-server.ts';
import { runCall } from '../../../agent/server/run-call.ts';
import { run } from '../../../cni-plugins/run.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { sampleLease } from '../pool/supply-sample.ts';

/** An agent whose leases are of the plugin that asks. It serves the executables, and the launcher's `Run`. */
async function serve(t: ExecutionContext) {
  const dir = createTempDir('run-call');
  const socketPath = dir.join('agent.sock');
  const wired = { hostVeth: { name: 'eni1', mac: '02:00:00:00:00:01', ifindex: 9 }, podMac: '02:00:00:00:00:02' };
  const useCases: AgentUseCases = {
    attach: async ({ plugin, uplink }) => {
      if (plugin === 'direct-eni') return { kind: 'failed', failure: { code: 101, msg: 'none left', details: 'wait' } };
      const change = { plugin, ...(plugin === 'ipam' ? {} : wired), ...(uplink ? { uplink: true as const } : {}) };
      return { kind: 'attached', lease: sampleLease('c1', 'eni-1', ['10.0.0.5', 'fd00::5'], change) };
    },
    detach: async () => undefined,
    check: async () => ({
      kind: 'checked',
      lease: sampleLease('c1', 'eni-1', ['10.0.0.5'], wired),
      differences: ['one'],
    }),
    status: () => undefined,
    collectInvalid: async () => ({ released: 1, failed: 1 }),
    ignoredKeys: () => undefined,
    addressing: () =>
      ([4, 6] as const).map((family) => ({
        ...{ family, link: { name: 'eth1', mac: '02:00:00:00:00:07' } },
        ...(family === 4
          ? { ip: '10.0.0.2', gateway: '10.0.0.1', subnetCidr: '10.0.0.0/24' }
          : { ip: 'fd00::2', gateway: 'fd00::1', subnetCidr: 'fd00::/64' }),
      })),
  };
  const place = { socketPath, hostRoot: '/', clock: systemClock };
  const implementation = agentImplementation(useCases, 'r1', new AbortController().signal, (calls, request, signal) =>
    runCall({ ...place, calls }, request, signal),
  );
  const server = await serveGrpc(implementation, { socketPath });
  const client = new Client(`unix:${socketPath}`, credentials.createInsecure());
  t.teardown(async () => {
    client.close();
    await server.drain(0);
    dir.close();
  });
  const { path, requestSerialize, responseDeserialize } = SOCKET_SERVICE.run;
  const launch = (request: RunRequest): Promise<RunReplyInit> =>
    new Promise((resolve, reject) => {
      client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, (error, reply) =>
        error === null && reply !== undefined ? resolve(reply as RunReplyInit) : reject(error),
      );
    });
  return { socketPath, launch };
}

/** Configurations: of the product, of main plugins, of the agent; with what is new, old, unknown and wrong. */
const CONFS: readonly (readonly [name: string, conf: object])[] = [
  ['tke-route-eni', { cniVersion: '1.1.0' }],
  ['tke-route-eni', { cniVersion: '0.2.0', eni: 'eth1', routeTable: 1, kubeconfig: '/k', logLevel: 'info' }],
  ['tke-route-eni', { cniVersion: '0.3.1', disableIPv6: true, mtu: 1500, ipam: { type: 'tke-eni-ipamc' } }],
  ['tke-route-eni', { cniVersion: '0.2.0', mtu: 'wrong' }],
  ['tke-route-eni', { cniVersion: '0.1.0' }],
  ['tke-direct-eni', { cniVersion: '0.2.0' }],
  ['tke-eni-ipamc', { cniVersion: '0.2.0', type: 'ptp', ipam: {} }],
  ['tke-eni-ipamc', { cniVersion: '1.0.0', type: 'cilium-cni', 'log-file': '/x', ipam: { type: 'tke-eni-ipamc' } }],
  ['tke-eni-ipamc', { cniVersion: '0.3.1', type: 'cilium-cni', ipam: { uplink: true } }],
  ['tke-eni-ipamc', { cniVersion: '0.2.0', type: 'cilium-cni', ipam: { uplink: true } }],
];

test('runCall: the launcher prints what the executable itself prints, byte for byte', async (t) => {
  const { socketPath, launch } = await serve(t);
  let successes = 0;
  for (const [name, given] of CONFS) {
    for (const command of ['ADD', 'CHECK', 'DEL', 'STATUS', 'GC', 'VERSION']) {
      const more =
        command === 'CHECK' ? { prevResult: { ips: [] } } : command === 'GC' ? { 'cni.dev/attachments': [] } : {};
      const isIpam = name === 'tke-eni-ipamc';
      const backend = `unix:${socketPath}`;
      const at = isIpam ? { ipam: { ...Object(Reflect.get(given, 'ipam')), backend } } : { backend };
      const stdin = JSON.stringify({ name: 'net', type: name, ...given, ...at, ...more });
      const env = { CNI_COMMAND: command, CNI_CONTAINERID: 'c1', CNI_NETNS: '/run/netns/c1', CNI_IFNAME: 'eth0' };
      const own = await run({
        ...{ name, args: [], env, readStdin: () => stdin },
        ...{ nowMs: () => systemClock.nowMs(), bootMs: () => systemClock.bootMs() },
      });
      const variables = Object.entries(env).map(([key, value]) => `${key}=${value}`);
      const launched = await launch({ name, env: variables, stdin: Buffer.from(stdin) });
      const title = `${command} ${name} ${JSON.stringify(given)}`;
      t.is(launched.outcome, OUTCOME.OUTCOME_PRINT, title);
      t.is(Buffer.from(launched.stdout ?? '').toString(), own.stdout, title);
      t.is(launched.exitCode, own.code, title);
      if (command === 'ADD' && own.code === 0) successes++;
    }
  }
  t.is(successes, 6);
});

test('runCall: a call for a TCP address is for the executable itself', async (t) => {
  const { launch } = await serve(t);
  const stdin = JSON.stringify({ cniVersion: '0.2.0', name: 'net', type: 'tke-route-eni', backend: '127.0.0.1:61677' });
  const env = ['CNI_COMMAND=ADD', 'CNI_CONTAINERID=c1', 'CNI_NETNS=/run/netns/c1', 'CNI_IFNAME=eth0'];
  const { outcome } = await launch({ name: 'tke-route-eni', env, stdin: Buffer.from(stdin) });
  t.is(outcome, OUTCOME.OUTCOME_RUN_YOURSELF);
});
