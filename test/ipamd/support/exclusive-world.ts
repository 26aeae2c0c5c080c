import {
  NODE_ENI_CONFIG_KIND,
  type NodeEniConfigSpec,
  type NodeEniConfigStatus,
  type NodeEniInfo,
} from '../../../crd/node-eni-config-fields.ts';
import { checkNodeEniConfig } from '../../../crd/node-eni-config-rules.ts';
import { decodeVpcEni, type VpcEniEntry } from '../../../ipamd/cache/vpc-eni-entry.ts';
import type { ClaimRequest } from '../../../ipamd/decide/claim-request.ts';
import { decideNode } from '../../../ipamd/decide/decide-node.ts';
import type { CloudSnapshot, Ids, Intent, IntentOutcome, Leader, ObservedEni } from '../../../ipamd/decide/decision.ts';
import { evaluateIntent } from '../../../ipamd/decide/evaluate-intent.ts';
import { finishIntent, resendIntent } from '../../../ipamd/decide/finish-intent.ts';
import type { NodeView } from '../../../ipamd/decide/node-view.ts';
import { decideVpcEni, type NodeEniEntry, type VpcEniFacts } from '../../../ipamd/exclusive/decide-vpc-eni.ts';
import { newVpcEni, withEni } from '../../../ipamd/exclusive/render-vpc-eni.ts';
import { staticEnisOf } from '../../../ipamd/exclusive/static-eni-index.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { Faults } from '../../../runtime/decode.ts';
import type { CallFate } from './nec-world.ts';

/** Three places on each instance: for shared and exclusive ENIs together. */
const PLACES = 3;
export const NODES = ['n1', 'n2'] as const;
export const CLAIMS = ['ns/web-0', 'ns/web-1'] as const;
export type NodeName = (typeof NODES)[number];
export type ClaimKey = (typeof CLAIMS)[number];

const LEADER: Leader = { epoch: 1, clusterId: 'cls-laws', requestTimeoutSeconds: 60 };
const NOW = '2026-01-01T00:00:00Z';

/** A Pod's sandbox, and the ENI that the agent gave it. */
type Lease = { readonly eniId: string; readonly claim?: ClaimKey; readonly uid?: string };

/** One node as its object and its agent have it. */
type NodeState = {
  spec: NodeEniConfigSpec;
  status: NodeEniConfigStatus;
  leaving: NodeView['leaving'];
  maxDirectENI: number;
  /** Pods of the pool that there are to be. */
  podsOfPool: number;
  leases: readonly Lease[];
};

/** A claim, and the Pod of its name by the API server's word. */
type ClaimState = { uid?: string; node?: NodeName; groups?: readonly string[]; isEnded: boolean };

/** Two nodes with their agents, the VpcENIs, and a cloud that does what it is asked; no clock. */
export class DirectWorld {
  readonly nodes: Record<NodeName, NodeState> = { n1: newNode(), n2: newNode() };
  readonly claims: Record<ClaimKey, ClaimState> = { 'ns/web-0': { isEnded: false }, 'ns/web-1': { isEnded: false } };
  readonly cloud = new Map<string, ObservedEni>();
  readonly vpcEnis = new Map<string, KubeObject>();
  readonly broken: string[] = [];
  groups: readonly string[] = ['sg-node'];
  /** The ENI that a claim got first: it stays the claim's for good. */
  readonly #eniOf = new Map<string, string>();
  #ids = 0;
  #serial = 0;

  readonly ids: Ids = { next: () => (++this.#ids).toString(16).padStart(16, '0'), now: () => NOW };

  view(name: NodeName): NodeView {
    const { spec, status, leaving, maxDirectENI } = this.nodes[name];
    return {
      nodeName: name,
      uid: `uid-${name}`,
      spec,
      status,
      leaving,
      instance: {
        instanceId: `ins-${name}`,
        instanceType: 'S5',
        zone: 'z',
        vpcId: 'vpc-1',
        isRunning: true,
        secondaryEnis: PLACES,
        secondaryIpsPerEni: 3,
      },
      maxRouteENI: undefined,
      maxIPPerENI: undefined,
      maxDirectENI,
      initialExclusiveDemand: 1,
      floor: 0,
      initialDemand: 0,
      subnets: [{ subnetId: 'subnet-a', cidr: '10.0.1.0/24', freeIps: 200, isBlocked: false }],
      securityGroups: this.groups,
      blocked: new Set(),
      stuck: new Set(),
      claims: this.#wishes(name),
      claimCallsElsewhere: this.#callsOfOthers(name),
      staticEnis: staticEnisOf(this.#entries(), this.#marked()),
    };
  }

  /** A Pod of the claim's name runs on a node from now on; the one before it is gone by the API server's word. */
  pod(key: ClaimKey, node: NodeName | undefined, groups: readonly string[] | undefined): void {
    const claim = this.claims[key];
    if (claim.isEnded && this.#isHeld(key)) return;
    const { groups: _before, uid: _uid, node: _node, ...rest } = claim;
    const uid = node === undefined ? {} : { uid: `pod-${++this.#ids}`, node };
    this.claims[key] = { ...rest, ...uid, ...(groups === undefined ? {} : { groups }), isEnded: false };
  }

  /** The claim ends, once its Pod is gone. */
  end(key: ClaimKey): void {
    this.claims[key] = { isEnded: true };
    this.#eniOf.delete(key);
  }

  /** Reads the object, gives Pods their ENIs, and writes demand and offers, in one guarded write. */
  agent(name: NodeName, isReaping: boolean): void {
    const node = this.nodes[name];
    const enis = direct(node.status);
    const isOf = ({ claim, uid }: Lease) => claim === undefined || this.#podOf(claim, name) === uid;
    let leases = node.leases.filter((lease) => (isReaping ? isOf(lease) : true));
    const ofPool = leases.filter(({ claim }) => claim === undefined).slice(0, node.podsOfPool);
    leases = [...leases.filter(({ claim }) => claim !== undefined), ...ofPool];
    const isFree = (eni: NodeEniInfo) => eni.state === 'Attached' && !leases.some(({ eniId }) => eniId === eni.eniID);
    for (const key of CLAIMS) {
      const uid = this.#podOf(key, name);
      const eni = enis.find((one) => isFree(one) && keyOf(one) === key && one.claim?.uid === uid);
      const hasOne = leases.some((lease) => lease.claim === key && lease.uid === uid);
      if (uid !== undefined && eni !== undefined && !hasOne) {
        this.#judgeGroups(eni.eniID, key);
        leases = [...leases, { eniId: eni.eniID, claim: key, uid }];
      }
    }
    for (const eni of enis) {
      const has = leases.filter(({ claim }) => claim === undefined).length;
      const mayServe = isFree(eni) && eni.claim === undefined && eni.draining !== true;
      if (mayServe && has < node.podsOfPool) leases = [...leases, { eniId: eni.eniID }];
    }
    node.leases = leases;
    node.spec = { ...node.spec, ...demandOf(node, enis.filter(isFree)) };
  }

  /** Decides once about a node, and calls with that fate. Says whether there was anything to do. */
  step(name: NodeName, fate: CallFate): boolean {
    const node = this.nodes[name];
    const before = JSON.stringify(node.status);
    const unsolved = node.status.intents?.find(({ phase, tries }) => phase !== 'Recorded' || tries !== undefined);
    if (unsolved !== undefined) return this.#resolve(name, unsolved);
    const ids = this.#ids;
    const first = decideNode(this.view(name), LEADER, this.ids);
    this.#ids = ids;
    const again = decideNode(this.view(name), LEADER, this.ids);
    if (JSON.stringify(first) !== JSON.stringify(again)) this.broken.push('the same view is decided otherwise');
    if (first.kind === 'write' || first.kind === 'begin') this.#put(name, first.status, true);
    if (first.kind !== 'begin') return JSON.stringify(node.status) !== before;
    this.#call(name, first.intent, fate);
    return true;
  }

  /** Brings the VpcENI of one ENI in line, as far as it goes now. Says whether anything changed. */
  keep(eniId: string): boolean {
    const before = JSON.stringify(this.vpcEnis.get(eniId));
    const entries = NODES.flatMap((nodeName): readonly NodeEniEntry[] => {
      const eni = direct(this.nodes[nodeName].status).find((one) => one.eniID === eniId);
      return eni === undefined ? [] : [{ nodeName, instanceId: `ins-${nodeName}`, zone: 'z', eni }];
    });
    let facts: Omit<VpcEniFacts, 'vpcEni'> = { entries, claim: 'unknown', cloud: 'unasked' };
    for (let round = 0; round < 8; round++) {
      const object = this.vpcEnis.get(eniId);
      const vpcEni = object === undefined ? undefined : decodeVpcEni(object);
      const step = decideVpcEni({ ...facts, vpcEni });
      switch (step.kind) {
        case 'none':
        case 'wait':
          return JSON.stringify(this.vpcEnis.get(eniId)) !== before;
        case 'look':
          facts = { ...facts, cloud: this.#wordOf(eniId) };
          continue;
        case 'ask-claim':
          facts = { ...facts, claim: this.#isKept(vpcEni) ? 'kept' : 'ended' };
          continue;
        case 'write': {
          const { entry, phase } = step;
          const next = object === undefined ? undefined : withEni(object, entry, phase, NOW);
          const made = entry === undefined ? undefined : newVpcEni(entry, phase, NOW);
          const wanted = next ?? made;
          if (wanted !== undefined) this.vpcEnis.set(eniId, wanted);
          if (entry !== undefined) return JSON.stringify(wanted) !== before;
          continue;
        }
        case 'delete-eni':
          this.#judgeDeletion(eniId);
          this.cloud.delete(eniId);
          facts = { ...facts, cloud: 'absent' };
          continue;
        case 'let-go':
          this.vpcEnis.delete(eniId);
          return true;
      }
    }
    this.broken.push(`the VpcENI of ${eniId} does not come to rest`);
    return true;
  }

  /** ENIs that anything knows of. */
  eniIds(): readonly string[] {
    const ofNodes = NODES.flatMap((name) => direct(this.nodes[name].status).map(({ eniID }) => eniID));
    return [...new Set([...this.vpcEnis.keys(), ...ofNodes])];
  }

  /** What serves on a node for the Pods of a claim; for the pool without one. */
  serving(name: NodeName, key?: ClaimKey): readonly NodeEniInfo[] {
    return direct(this.nodes[name].status).filter((eni) => eni.state === 'Attached' && keyOf(eni) === key);
  }

  #podOf(key: ClaimKey, name: NodeName): string | undefined {
    const { uid, node } = this.claims[key];
    return node === name ? uid : undefined;
  }

  #isHeld(key: ClaimKey): boolean {
    const inUse = NODES.some((name) => this.nodes[name].leases.some(({ claim }) => claim === key));
    return (
      inUse || this.#marked().some(({ claim }) => claim === key) || this.#entries().some((one) => one.claim === key)
    );
  }

  #isKept(held: VpcEniEntry | undefined): boolean {
    const claim = this.claims[held?.claim as ClaimKey];
    return claim !== undefined && !claim.isEnded && this.#eniOf.get(held?.claim ?? '') === held?.eniId;
  }

  #entries(): readonly VpcEniEntry[] {
    return [...this.vpcEnis.values()].map(decodeVpcEni);
  }

  #marked() {
    return NODES.flatMap((nodeName) =>
      direct(this.nodes[nodeName].status).flatMap((eni) => {
        const claim = keyOf(eni);
        return claim === undefined ? [] : [{ nodeName, eni, claim }];
      }),
    );
  }

  #callsOfOthers(name: NodeName): ReadonlySet<string> {
    const others = NODES.filter((one) => one !== name);
    const intents = others.flatMap((one) => this.nodes[one].status.intents ?? []);
    return new Set(intents.flatMap(({ claim }) => (claim === undefined ? [] : [claim])));
  }

  #wishes(name: NodeName): ReadonlyMap<string, ClaimRequest> {
    const wishes = CLAIMS.flatMap((key): readonly ClaimRequest[] => {
      const { uid, node, groups, isEnded } = this.claims[key];
      const head = { key, mode: 'direct-eni' as const };
      if (node === name && uid !== undefined)
        return [{ ...head, goal: 'here', podUid: uid, ...(groups === undefined ? {} : { securityGroupIds: groups }) }];
      if (!this.#marked().some(({ nodeName, claim }) => nodeName === name && claim === key)) return [];
      if (isEnded) return [{ ...head, goal: 'free' }];
      return [{ ...head, goal: node === undefined ? 'keep' : 'elsewhere' }];
    });
    return new Map(wishes.map((wish) => [wish.key, wish]));
  }

  #resolve(name: NodeName, intent: Intent): boolean {
    const { status } = this.nodes[name];
    const judgement = evaluateIntent(intent, this.sight(), status);
    if (judgement !== 'repeat') {
      this.#put(name, finishIntent(status, intent, judgement, this.ids), false);
      return true;
    }
    this.#put(name, resendIntent(status, intent, LEADER.epoch), false);
    this.#call(name, this.nodes[name].status.intents?.find(({ id }) => id === intent.id) ?? intent, 'done');
    return true;
  }

  sight(): CloudSnapshot {
    return { enis: new Map(this.cloud), isComplete: true };
  }

  #call(name: NodeName, intent: Intent, fate: CallFate): void {
    const error = { code: 'TEST', message: fate };
    const done = fate === 'done' || fate === 'lost-after' ? this.#change(name, intent) : undefined;
    const outcome: IntentOutcome =
      fate === 'refused' ? { kind: 'refused', error } : (fate === 'done' && done) || { kind: 'unclear', error };
    this.#put(name, finishIntent(this.nodes[name].status, intent, outcome, this.ids), false);
  }

  /** Writes as the API server takes it, after judging what is taken and who is let in. */
  #put(name: NodeName, status: NodeEniConfigStatus, isDecided: boolean): void {
    const node = this.nodes[name];
    const faults = new Faults();
    NODE_ENI_CONFIG_KIND.fields['status']?.decoder(structuredClone(status), 'status', faults);
    checkNodeEniConfig({ spec: node.spec, status }, faults);
    for (const { path, expected, got } of faults.list) this.broken.push(`${path}: expected ${expected}, got ${got}`);
    if (isDecided) this.#judgeWrite(name, status);
    node.status = status;
  }

  #judgeWrite(name: NodeName, next: NodeEniConfigStatus): void {
    const { status, leases, leaving } = this.nodes[name];
    for (const eni of direct(status)) {
      const after = direct(next).find(({ eniID }) => eniID === eni.eniID);
      const lease = leases.find(({ eniId }) => eniId === eni.eniID);
      const isTaken = eni.state === 'Attached' && after?.state !== 'Attached';
      if (lease !== undefined && isTaken && leaving !== 'force') this.broken.push(`${eni.eniID} is taken from a Pod`);
      const isNewMark = keyOf(eni) === undefined && after !== undefined && keyOf(after) !== undefined;
      if (isNewMark && lease !== undefined) this.broken.push(`${eni.eniID} of a Pod is given to a claim`);
      const isNamed =
        this.vpcEnis.has(eni.eniID) || direct(this.nodes[other(name)].status).some(({ eniID }) => eniID === eni.eniID);
      if (after === undefined && this.cloud.has(eni.eniID) && !isNamed) this.broken.push(`${eni.eniID} is forgotten`);
    }
    for (const { eniID, claim } of direct(next)) {
      if (claim?.uid === undefined) continue;
      const key = `${claim.namespace}/${claim.name}` as ClaimKey;
      const before = direct(status).find((one) => one.eniID === eniID)?.claim?.uid;
      if (before !== claim.uid) this.#judgeGroups(eniID, key);
      const own = this.#eniOf.get(key) ?? eniID;
      if (own !== eniID) this.broken.push(`${key} had ${own} and gets ${eniID}`);
      this.#eniOf.set(key, own);
    }
  }

  #judgeGroups(eniId: string, key: ClaimKey): void {
    const wanted = JSON.stringify(this.claims[key].groups ?? this.groups);
    const held = JSON.stringify(this.cloud.get(eniId)?.securityGroups);
    if (held !== wanted) this.broken.push(`${key} is let on ${eniId} with ${held}, not ${wanted}`);
  }

  #judgeDeletion(eniId: string): void {
    const eni = this.cloud.get(eniId);
    if (eni?.instanceID !== undefined) this.broken.push(`${eniId} is deleted while bound`);
    for (const [key, own] of this.#eniOf) if (own === eniId) this.broken.push(`${eniId} of ${key} is deleted`);
  }

  #wordOf(eniId: string): VpcEniFacts['cloud'] {
    const eni = this.cloud.get(eniId);
    if (eni === undefined) return 'absent';
    return eni.instanceID === undefined ? 'free' : 'bound';
  }

  #change(name: NodeName, intent: Intent): IntentOutcome | undefined {
    const { action, eniID = '' } = intent;
    const eni = this.cloud.get(eniID);
    switch (action) {
      case 'CreateNetworkInterface': {
        const known = [...this.cloud.values()].find((one) => one.name === intent.resourceName);
        const made = known ?? this.#make(intent);
        this.cloud.set(made.eniID, made);
        return { kind: 'done', result: { action, eni: made } };
      }
      case 'AttachNetworkInterface': {
        if (eni === undefined) return undefined;
        const bound = [...this.cloud.values()].filter(({ instanceID }) => instanceID === `ins-${name}`);
        if (eni.instanceID !== undefined && eni.instanceID !== `ins-${name}`) return undefined;
        if (eni.instanceID === undefined && bound.length >= PLACES) this.broken.push('more ENIs than places');
        const used = new Set(bound.map(({ deviceIndex }) => deviceIndex));
        const deviceIndex = eni.deviceIndex ?? [1, 2, 3, 4].find((index) => !used.has(index)) ?? 9;
        const next: ObservedEni = { ...eni, instanceID: `ins-${name}`, deviceIndex };
        this.cloud.set(eniID, next);
        return { kind: 'done', result: { action, eni: next } };
      }
      case 'DetachNetworkInterface': {
        if (eni?.instanceID === `ins-${name}`) {
          const { instanceID: _on, deviceIndex: _at, ...free } = eni;
          this.cloud.set(eniID, free);
        }
        return { kind: 'done', result: { action } };
      }
      case 'DeleteNetworkInterface':
        this.#judgeDeletion(eniID);
        this.cloud.delete(eniID);
        return { kind: 'done', result: { action } };
      case 'ModifyNetworkInterfaceAttribute': {
        const { securityGroups = [] } = intent;
        if (eni !== undefined) this.cloud.set(eniID, { ...eni, securityGroups });
        return { kind: 'done', result: { action, securityGroups } };
      }
      default:
        this.broken.push(`${action} is none of exclusive ENIs`);
        return undefined;
    }
  }

  #make({ subnetID = '', resourceName = '', securityGroups = [], ipCount }: Intent): ObservedEni {
    const serial = ++this.#serial;
    if (ipCount !== undefined) this.broken.push('an exclusive ENI is born with addresses for Pods');
    return {
      eniID: `eni-${serial}`,
      mac: `20:90:6f:00:${Math.floor(serial / 256)
        .toString(16)
        .padStart(2, '0')}:${(serial % 256).toString(16).padStart(2, '0')}`,
      name: resourceName,
      primaryIP: `10.0.1.${1 + serial}`,
      subnetID,
      subnetCIDR: '10.0.1.0/24',
      gateway: '10.0.1.1',
      state: 'AVAILABLE',
      securityGroups,
      ips: [],
      pendingIps: [],
      mode: 'direct-eni',
    };
  }
}

function newNode(): NodeState {
  return { spec: {}, status: {}, leaving: 'no', maxDirectENI: PLACES, podsOfPool: 0, leases: [] };
}

function other(name: NodeName): NodeName {
  return name === 'n1' ? 'n2' : 'n1';
}

function direct({ eniInfos = [] }: NodeEniConfigStatus): readonly NodeEniInfo[] {
  return eniInfos.filter(({ mode }) => mode === 'direct-eni');
}

function keyOf({ claim }: NodeEniInfo): ClaimKey | undefined {
  return claim === undefined ? undefined : (`${claim.namespace}/${claim.name}` as ClaimKey);
}

/** The demand of a pool with one spare ENI, within what kept ones leave it, and what it has beyond that. */
function demandOf(
  { status, podsOfPool, leases, maxDirectENI }: NodeState,
  free: readonly NodeEniInfo[],
): Pick<NodeEniConfigSpec, 'desiredDirectENI' | 'releasableENIs'> {
  const inUse = leases.filter(({ claim }) => claim === undefined).length;
  const limit = Math.max(0, maxDirectENI - (status.staticDirectENIs ?? 0));
  const desiredDirectENI = Math.max(inUse, Math.min(podsOfPool + 1, limit));
  const ofPool = free.filter(({ claim, draining }) => claim === undefined && draining !== true);
  const surplus = ofPool.slice(0, Math.max(0, inUse + ofPool.length - desiredDirectENI));
  const going = free.filter(({ claim, draining }) =>
    claim === undefined ? draining === true : claim.uid === undefined,
  );
  const releasableENIs = [...surplus, ...going].flatMap(({ eniID, assignmentID }) =>
    assignmentID === undefined ? [] : [{ eniID, assignmentID }],
  );
  return { desiredDirectENI, releasableENIs };
}
