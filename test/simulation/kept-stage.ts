import { POD_ANNOTATION } from '../../crd/names.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { VPC_IP_CLAIMS } from '../../kube/resource-types.ts';
import { recordOf, recordsOf, textOf } from '../../runtime/json.ts';
import type { Machine } from './machine.ts';
import type { Stage } from './stage.ts';
import type { World } from './world.ts';

/** Annotations of a Pod whose address is kept. */
export const KEPT = { [POD_ANNOTATION.networks]: 'tke-route-eni', [POD_ANNOTATION.deletePolicy]: 'Never' };
const SUBNETS = [
  { subnetId: 'subnet-podsa000', zone: 'ap-guangzhou-3', cidr: '10.1.0.0/24' },
  { subnetId: 'subnet-podsb000', zone: 'ap-guangzhou-4', cidr: '10.2.0.0/24' },
  { subnetId: 'subnet-nodes000', zone: 'ap-guangzhou-3', cidr: '10.0.0.0/24' },
  { subnetId: 'subnet-nodes001', zone: 'ap-guangzhou-4', cidr: '10.0.1.0/24' },
] as const;
/** Its nodes keep addresses for Pods and have none beside them. */
export function worldOf(...flags: readonly string[]) {
  const own = ['--enable-static-ip=true', '--ip-min-warm-target=0', '--ip-max-warm-target=0'];
  return { cloud: { vpcId: 'vpc-0000test', subnets: SUBNETS }, flags: [...own, ...flags] };
}
/** A node in the other zone. */
export const OTHER_ZONE = { subnetId: 'subnet-nodes001' };
/** The claim and the Pod of most stories. */
export const REF = { namespace: 'default', name: 'web-0' };

/** A Pod whose address is kept. */
export const keep = (more: Readonly<Record<string, string>> = {}) => ({
  annotations: { ...KEPT, ...more },
  labels: { app: 'web' },
});

/** Starts a Pod whose address is kept, and returns its address. */
export async function start(stage: Stage, name: string, node: Machine, more?: Readonly<Record<string, string>>) {
  await stage.pod(name, node, keep(more));
  return stage.ipOf(name) ?? '';
}

/** A Pod ends, and the next of its name has the same address on another node. */
export async function move(stage: Stage, name: string, node: Machine): Promise<void> {
  const ip = stage.ipOf(name);
  await stage.endPods(name);
  stage.expect(`${name} has ${ip} again`, (await start(stage, name, node)) === ip);
}

/** An object of this project by its name. */
export function objectOf({ world }: { readonly world: World }, plural: string, name: string): KubeObject | undefined {
  // The store's objects are those of the API.
  return world.objects(plural).find(({ metadata }) => metadata.name === name) as KubeObject | undefined;
}

/** The claim of a Pod. */
export const claimOf = (stage: Stage, name = 'web-0') => objectOf(stage, 'vpcipclaims', name);
/** The phase of a claim. */
export const phaseOf = (stage: Stage, name = 'web-0') => recordOf(claimOf(stage, name)?.['status'])['phase'];

/** Goes on until a claim is in a phase. */
export async function untilPhase(stage: Stage, phase: string, name = 'web-0'): Promise<void> {
  await stage.until(`${name} is ${phase}`, () => phaseOf(stage, name) === phase);
}

/** Why a claim is as it is: reason and message. */
export function whyOf(stage: Stage, name = 'web-0'): string {
  const conditions = recordsOf(recordOf(claimOf(stage, name)?.['status'])['conditions']);
  const ready = conditions.find(({ type }) => type === 'Ready');
  return `${textOf(ready?.['reason'])}: ${textOf(ready?.['message'])}`;
}

/** Goes on until a claim says so. */
export async function untilWhy(stage: Stage, start: string, name = 'web-0'): Promise<void> {
  await stage.until(`${name} says ${start}`, () => whyOf(stage, name).startsWith(start));
}

/** People delete a claim. */
export async function deleteClaim({ world }: Stage, name = 'web-0'): Promise<void> {
  await world.run(world.admin.delete(VPC_IP_CLAIMS, { namespace: 'default', name }));
}

/** Somebody else's ENI has an address. Returns what gives it back. */
export function takeIp({ world }: Stage, ip: string): () => void {
  const { state } = world.host.model;
  const subnet = state.subnet('subnet-podsa000');
  subnet.pool.takeExact(ip);
  const eni = state.makeEni({
    ...{ subnet, ip, name: 'of-others', description: '', groups: [], tags: {}, isPrimary: true },
  });
  eni.state = 'AVAILABLE';
  return () => state.removeEni(eni);
}

/** The address of a claim. */
export function ipOfClaim(stage: Stage): string {
  const { ips } = recordOf(claimOf(stage)?.['status']);
  return Array.isArray(ips) ? textOf(ips[0]) : '';
}
