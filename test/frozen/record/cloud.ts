import type { CallContext } from '../../../cloud/cloud.ts';
import type { TencentApi } from '../../../cloud/tencent/requests.ts';
import { createTencentCloud } from '../../../cloud/tencent/tencent-cloud.ts';
import { claimTag } from '../../../crd/claim-tag.ts';
import { type EipClaim, eipClaim } from '../../../crd/eip-claim.ts';
import { nodeEniConfig } from '../../../crd/node-eni-config.ts';
import type { NodeEniConfigSpec } from '../../../crd/node-eni-config-fields.ts';
import { sendCall } from '../../../ipamd/calls/send-call.ts';
import { decideNode } from '../../../ipamd/decide/decide-node.ts';
import type { NodeView } from '../../../ipamd/decide/node-view.ts';
import { eipName, eipTags } from '../../../ipamd/guests/eip/eip-identity.ts';
import { sendEipCall } from '../../../ipamd/guests/eip/send-eip-call.ts';
import { decodeOrThrow } from '../../../runtime/decode.ts';
import { play, type Story } from '../../simulation/story.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { readFrozen } from '../frozen.ts';

type Request = { readonly action: string; readonly params: unknown };

/** Returns the request that is sent for each recorded intent, by its action; those that nobody sends are left out. */
export async function recordRequests(): Promise<object> {
  const config = decodeOrThrow(nodeEniConfig, readFrozen('objects/nodeeniconfig-recorded'), 'nec');
  const { intents = [] } = config.status ?? {};
  const claim: EipClaim = decodeOrThrow(eipClaim, readFrozen('objects/eipclaim'), 'eipc');
  const found: Record<string, readonly Request[]> = {};
  for (const intent of intents) {
    const sent = await sentBy((cloud, context) => sendCall(cloud, intent, config.status ?? {}, context));
    if (sent.length > 0) found[intent.action] = sent;
  }
  for (const intent of claim.status?.intents ?? []) {
    found[intent.action] = await sentBy((cloud, context) => sendEipCall({ cloud }, intent, claim.spec ?? {}, context));
  }
  return found;
}

type Cloud = ReturnType<typeof createTencentCloud>;

/** Makes a call and breaks it off once it is sent. */
async function sentBy(call: (cloud: Cloud, context: CallContext) => Promise<unknown>): Promise<readonly Request[]> {
  const sent: Request[] = [];
  const api: TencentApi = {
    call: async (action, params) => {
      sent.push({ action, params });
      throw new Error('sent');
    },
    renewCredentials: () => undefined,
  };
  const clock = new VirtualClock();
  const cloud = createTencentCloud({ api, clock, random: () => 0.5 });
  const context: CallContext = { priority: 'pod', owner: 'n1', signal: new AbortController().signal };
  await clock.run(call(cloud, context).catch(() => undefined));
  return sent;
}

const LONG = 'a-very-long-name'.repeat(16).slice(0, 253);

/** Returns names, tags and ClientToken of what ipamd makes: of short and of very long names of cluster, node and Pod. */
export function recordIdentities(): object {
  const uid = '0d6f5a1e-0000-4000-8000-00000000000a';
  return {
    'shared ENI': birthOf('cls-frozen01', 'n1', { desiredRouteENIIP: 12 }),
    'exclusive ENI': birthOf('cls-frozen01', 'n1', { desiredDirectENI: 1, maxDirectENI: 2 }),
    'shared ENI, long names': birthOf(LONG.slice(0, 63), LONG, { desiredRouteENIIP: 1 }),
    EIP: { name: eipName(uid, 3), tags: eipTags('cls-frozen01', 'shop/web-0') },
    'EIP, long names': { name: eipName(LONG, 3), tag: claimTag(`${LONG.slice(0, 63)}/${LONG}`) },
  };
}

/** What a node without ENIs that wants this begins with. */
function birthOf(clusterId: string, nodeName: string, spec: NodeEniConfigSpec): object {
  const ids = { next: () => '00000000000000aa', now: () => '2026-01-31T23:59:59Z' };
  const leader = { epoch: 3, clusterId, requestTimeoutSeconds: 30 };
  const decision = decideNode(viewOf(nodeName, spec), leader, ids);
  if (decision.kind !== 'begin') throw new Error(`${nodeName}: ${JSON.stringify(decision)}`);
  return decision.intent;
}

function viewOf(nodeName: string, spec: NodeEniConfigSpec): NodeView {
  const instance = { instanceId: 'ins-n1000000', instanceType: 'S5', zone: 'ap-guangzhou-3', vpcId: 'vpc-frozen01' };
  return {
    ...{ nodeName, uid: '0d6f5a1e-0000-4000-8000-00000000000a', spec, status: {}, leaving: 'no' },
    instance: { ...instance, isRunning: true, secondaryEnis: 3, secondaryIpsPerEni: 9 },
    ...{ maxRouteENI: undefined, maxIPPerENI: undefined, floor: 0, initialDemand: 0, initialExclusiveDemand: 0 },
    ...(spec.maxDirectENI === undefined ? {} : { maxDirectENI: spec.maxDirectENI }),
    subnets: [{ subnetId: 'subnet-a', cidr: '10.0.2.0/24', freeIps: 200, isBlocked: false }],
    ...{ securityGroups: ['sg-one'], blocked: new Set(), stuck: new Set() },
  };
}

const LIFE: Story = {
  title: 'a node gets ENIs and addresses, and gives them back',
  world: { flags: ['--enable-security-groups=true', '--security-groups=sg-one'] },
  tell: async (stage) => {
    const node = await stage.node();
    const fault = { kind: 'error', code: 'InvalidParameterValue.Malformed' } as const;
    stage.cloudFault({ fault, actions: ['AssignPrivateIpAddresses'], times: 1 });
    await stage.pods(node, 14);
    await stage.end(node, 14);
    await stage.until('one ENI is left', () => stage.nec(node).status.eniInfos?.length === 1, 3_600_000);
  },
};

/** Has one node grow and shrink. Returns each form of request that changed something, and the fields of log lines. */
export async function recordLife(): Promise<object> {
  const { world } = await play(LIFE, { keepsLines: true });
  const requests: Request[] = [];
  const fields = new Set<string>();
  for (const line of world.record.lines) {
    const [, what = '', values = '{}'] = / (cloud before \w+|cloud call ended) (\{.*\})$/.exec(line) ?? [];
    const action = what.split(' ')[2] ?? '';
    if (action === 'ended') for (const key of Object.keys(JSON.parse(values))) fields.add(key);
    else if (what !== '' && !action.startsWith('Describe'))
      requests.push({ action, params: formOf(JSON.parse(values)) });
  }
  return { requests: formsOf(requests), 'cloud call ended': [...fields].sort() };
}

function formsOf(requests: readonly Request[]): Readonly<Record<string, readonly unknown[]>> {
  const byAction = Map.groupBy(requests, ({ action }) => action);
  const forms = [...byAction].map(([action, all]) => {
    const texts = new Set(all.map(({ params }) => JSON.stringify(params)));
    return [action, [...texts].sort().map((text): unknown => JSON.parse(text))] as const;
  });
  return Object.fromEntries(forms);
}

/** Puts words in place of what differs from call to call; a list of like things is one of them. */
function formOf(value: unknown): unknown {
  if (Array.isArray(value)) {
    const forms = new Map(value.map((item) => [JSON.stringify(formOf(item)), formOf(item)]));
    return [...forms.values()];
  }
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, formOf(item)]));
  }
  if (typeof value === 'number') return '<number>';
  return String(value)
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<uuid>')
    .replaceAll(/[0-9a-f]{16}/g, '<id>')
    .replaceAll(/\beni-[0-9a-z]{8}\b/g, '<eni>')
    .replaceAll(/\b(subnet|vpc|ins)-[0-9a-z]{8}\b/g, '<$1>')
    .replaceAll('cls-sim00001', '<cluster>')
    .replaceAll('node-01', '<node>')
    .replaceAll(/\b\d+\.\d+\.\d+\.\d+\b/g, '<ip>');
}
