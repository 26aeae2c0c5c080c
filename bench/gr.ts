import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { addAndDelete, burst, type Side } from './cni/sides.ts';
import { establishFlows } from './forwarding/flow.ts';
import { measureInTurn, type Rounds } from './forwarding/in-turn.ts';
import { egress } from './forwarding/measures.ts';
import { openPath, type Path, type PathSpec } from './forwarding/path.ts';
import { type BenchRow, benchRow, median } from './row.ts';
import { type BenchScene, openBenchScene } from './scene.ts';

/** How often ADD and DEL of one Pod are measured on each side. */
const ROUNDS = 25;
/** How often thirty ADDs at once are measured on each side. */
const BURSTS = 5;
const BURST_PODS = 30;
const FORWARD_ROUNDS: Rounds = { rounds: 41, burstMs: 30 };
const PEER = 'bridge + host-local';

/**
 * Measures GlobalRoute Pods beside Debian's bridge with host-local, as the product wires them: whole ADD and DEL calls, process
 * start to exit, in turn, the peer's in a node of its own, with ADDs of Pods of an ENI beside; then packets per second from a Pod out of the node.
 */
export async function runSuite(): Promise<readonly BenchRow[]> {
  return [...(await measureCalls()), ...(await measureForwarding())];
}

async function measureCalls(): Promise<readonly BenchRow[]> {
  const flags = { 'default-network': 'tke-bridge', 'pod-cidr': '172.20.0.0/25' };
  await using gr = await openBenchScene({ ips: 2, agentFlags: flags });
  await using routed = await openBenchScene({ ips: 2, agentFlags: { ...flags, 'gr-wiring': 'routed' } });
  await using eni = await openBenchScene({ ips: BURST_PODS * 2 + 4 });
  mkdirSync(join(gr.dir, 'host-local'));
  const sides: Readonly<Record<string, { readonly scene: BenchScene; readonly side: Side }>> = {
    bridge: { scene: gr, side: oursOf(gr) },
    routed: { scene: routed, side: oursOf(routed) },
    eni: { scene: eni, side: oursOf(eni) },
    peer: { scene: gr, side: peerOf(gr) },
  };
  const adds = new Map<string, number[]>();
  const dels = new Map<string, number[]>();
  const bursts = new Map<string, number[]>();
  const push = (to: Map<string, number[]>, name: string, ms: number) => to.set(name, [...(to.get(name) ?? []), ms]);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, { scene, side }] of Object.entries(sides)) {
      const { addMs, delMs } = await addAndDelete(scene, side);
      push(adds, name, addMs);
      push(dels, name, delMs);
    }
  }
  for (let round = 0; round < BURSTS; round++) {
    for (const [name, { scene, side }] of Object.entries(sides))
      push(bursts, name, (await burst(scene, side, BURST_PODS)).addMs);
  }
  const row = (what: string, name: 'bridge' | 'routed', of: ReadonlyMap<string, readonly number[]>, how: string) => {
    const ms = (side: string) => median(of.get(side) ?? []);
    return benchRow({
      ...{ suite: 'gr', case: `${what}-${name}`, ours: ms(name), peer: ms('peer'), peerName: PEER, unit: 'ms' },
      extra: `${how}; a Pod of an ENI ${ms('eni').toFixed(1)} ms (ratio ${(ms('eni') / ms(name)).toFixed(2)})`,
    });
  };
  return (['bridge', 'routed'] as const).flatMap((name) => [
    row('add-one', name, adds, `median of ${ROUNDS}, process start to exit`),
    row('del-one', name, dels, `median of ${ROUNDS}, process start to exit`),
    row('add-thirty', name, bursts, `${BURST_PODS} at once, median of ${BURSTS}, first start to last exit`),
  ]);
}

function oursOf(scene: BenchScene): Side {
  return { runtime: scene.runtime, conf: scene.conf(), binary: scene.plugin, cniPath: scene.binDir };
}

function peerOf({ peerRuntime, dir }: BenchScene): Side {
  return { runtime: peerRuntime, conf: bridgeConf(dir), binary: '/usr/lib/cni/bridge', cniPath: '/usr/lib/cni' };
}

/** As the product's tke-bridge-agent writes it, on a bridge of its own. */
function bridgeConf(dir: string): object {
  return {
    ...{ cniVersion: '1.0.0', name: 'peer', type: 'bridge', bridge: 'peer0', isGateway: true, forceAddress: true },
    ...{ hairpinMode: true, ipMasq: false, mtu: 1500 },
    ipam: {
      ...{ type: 'host-local', dataDir: join(dir, 'host-local'), ranges: [[{ subnet: '172.21.0.0/25' }]] },
      routes: [{ dst: '0.0.0.0/0' }],
    },
  };
}

const OURS: Readonly<Record<string, PathSpec>> = {
  'forward-bridge': { kind: 'gr', wiring: 'bridge', ruleMode: 'compact' },
  'forward-routed': { kind: 'gr', wiring: 'routed', ruleMode: 'compact' },
  'forward-bridge-per-pod': { kind: 'gr', wiring: 'bridge', ruleMode: 'per-pod' },
};
const THEIRS: PathSpec = { kind: 'bridge-plugin' };
const WITH_RULE: PathSpec = { kind: 'bridge-plugin', hasIdleRule: true };

async function measureForwarding(): Promise<readonly BenchRow[]> {
  const paths = new Map<string, Path>();
  try {
    for (const [name, spec] of Object.entries({ ...OURS, peer: THEIRS, 'peer with rule': WITH_RULE })) {
      console.error(`  laying path ${name}`);
      paths.set(name, await openPath(spec));
    }
    await establishFlows([...paths.values()].map(({ flows }) => flows.egress));
    const samples = await measureInTurn(paths, { egress }, FORWARD_ROUNDS);
    const rate = (of: string) => median(samples.egress.get(of) ?? []);
    const how = `${FORWARD_ROUNDS.rounds} bursts of ${FORWARD_ROUNDS.burstMs} ms, in turn`;
    return Object.keys(OURS).map((name) =>
      benchRow({
        ...{ suite: 'gr', case: name, ours: rate(name), peer: rate('peer'), peerName: PEER, unit: 'packets/s' },
        extra: `with one idle policy rule ${Math.round(rate('peer with rule'))}/s (ratio ${(rate(name) / rate('peer with rule')).toFixed(2)}); ${how}`,
      }),
    );
  } finally {
    for (const path of paths.values()) path.close();
  }
}
