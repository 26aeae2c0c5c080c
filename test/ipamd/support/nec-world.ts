import {
  NODE_ENI_CONFIG_KIND,
  type NodeEniAddress,
  type NodeEniConfigSpec,
  type NodeEniConfigStatus,
} from '../../../crd/node-eni-config-fields.ts';
import { checkNodeEniConfig } from '../../../crd/node-eni-config-rules.ts';
import { decideNode } from '../../../ipamd/decide/decide-node.ts';
import type { CloudSnapshot, Ids, Intent, IntentOutcome, Leader, ObservedEni } from '../../../ipamd/decide/decision.ts';
import { evaluateIntent } from '../../../ipamd/decide/evaluate-intent.ts';
import { finishIntent, resendIntent } from '../../../ipamd/decide/finish-intent.ts';
import type { NodeView } from '../../../ipamd/decide/node-view.ts';
import { Faults } from '../../../runtime/decode.ts';

/** Two ENIs of three addresses: the smallest on which every rule matters. */
export const MOST = { secondaryEnis: 2, secondaryIpsPerEni: 3 } as const;

/** What happens to one call. */
export type CallFate = 'done' | 'refused' | 'lost-before' | 'lost-after';

const LEADER: Leader = { epoch: 1, clusterId: 'cls-laws', requestTimeoutSeconds: 60 };
const SUBNETS = [
  { subnetId: 'subnet-a', cidr: '10.0.1.0/24' },
  { subnetId: 'subnet-b', cidr: '10.0.2.0/24' },
] as const;

const TAKEN: IntentOutcome = { kind: 'refused', error: { code: 'ResourceInUse', message: 'somebody has it' } };

/** A node, its agent and a cloud that does what it is asked, without clocks: for laws about the decisions alone. */
export class NecWorld {
  spec: NodeEniConfigSpec = { desiredRouteENIIP: 0 };
  status: NodeEniConfigStatus = {};
  leaving: NodeView['leaving'] = 'no';
  maxRouteENI: number | undefined;
  groups: readonly string[] | undefined;
  /** What is wanted of kept addresses; the default of the view. */
  claims: NodeView['claims'];
  /** Kept addresses that are on an ENI of another node. */
  readonly elsewhere = new Map<string, string>();
  /** Addresses that the subnets have left, whatever is taken or given back. */
  free = { 'subnet-a': 200, 'subnet-b': 100 };
  /** From now on what is taken is gone, and what is given back is free again. */
  isCounting = false;
  readonly cloud = new Map<string, ObservedEni>();
  readonly broken: string[] = [];
  #ids = 0;
  #serial = 0;
  /** Given in the call that is being made. */
  readonly #promised = new Set<string>();

  readonly ids: Ids = { next: () => (++this.#ids).toString(16).padStart(16, '0'), now: () => '2026-01-01T00:00:00Z' };

  view(): NodeView {
    return {
      nodeName: 'n1',
      uid: 'uid-1',
      spec: this.spec,
      status: this.status,
      leaving: this.leaving,
      instance: { instanceId: 'ins-1', instanceType: 'S5', zone: 'z', vpcId: 'vpc-1', isRunning: true, ...MOST },
      maxRouteENI: this.maxRouteENI,
      maxIPPerENI: undefined,
      floor: 0,
      initialDemand: 0,
      subnets: SUBNETS.map((subnet) => ({ ...subnet, freeIps: this.free[subnet.subnetId], isBlocked: false })),
      securityGroups: this.groups,
      blocked: new Set(),
      stuck: new Set(),
      ...(this.claims === undefined ? {} : { claims: this.claims, reservedIps: this.reserved() }),
    };
  }

  /** Claims that do not end, by the address that is theirs. */
  reserved(): ReadonlyMap<string, string> {
    const kept = [...(this.claims?.values() ?? [])].filter(({ goal }) => goal !== 'free');
    return new Map(kept.flatMap(({ key, ip }) => (ip === undefined ? [] : [[ip, key]])));
  }

  /** Every address of the node that carries a mark, by the claim. */
  marks(): ReadonlyMap<string, NodeEniAddress> {
    const addresses = (this.status.eniInfos ?? []).flatMap((eni) => eni.addresses ?? []);
    return new Map(
      addresses.flatMap((one) => (one.claim === undefined ? [] : [[`${one.claim.namespace}/${one.claim.name}`, one]])),
    );
  }

  /** What the node is to have when nothing more happens. */
  goal(): number {
    if (this.leaving !== 'no') return 0;
    const enis = Math.min(MOST.secondaryEnis, this.maxRouteENI ?? MOST.secondaryEnis);
    const places = enis * MOST.secondaryIpsPerEni - (this.status.staticRouteENIIPs ?? 0);
    return Math.max(0, Math.min(this.spec.desiredRouteENIIP ?? 0, places));
  }

  have(): number {
    const serving = (this.status.eniInfos ?? []).filter((eni) => eni.state === 'Attached' && eni.draining !== true);
    const pooled = serving.flatMap((eni) => eni.addresses ?? []).filter(({ claim }) => claim === undefined);
    return pooled.filter((address) => address.state === 'Assigned').length;
  }

  /** The agent wants so many, and offers of what serves beyond it, and of what drains, all but what is in use. */
  demand(count: number, inUse: number): void {
    const serving = (this.status.eniInfos ?? []).filter((eni) => eni.state === 'Attached');
    const addresses = serving.flatMap((eni) => (eni.addresses ?? []).filter((address) => address.state === 'Assigned'));
    const pooled = addresses.filter(({ claim }) => claim === undefined);
    const idle = addresses.filter(({ claim }) => claim !== undefined && claim.uid === undefined);
    const releasableIPs = [...pooled.slice(inUse), ...idle].map(({ ip, assignmentID }) => ({ ip, assignmentID }));
    this.spec = { desiredRouteENIIP: count, releasableIPs };
  }

  /** Decides once, and calls with that fate. Says whether there was anything to do. */
  step(fate: CallFate): boolean {
    const before = JSON.stringify(this.status);
    const unsolved = this.status.intents?.find((intent) => intent.phase !== 'Recorded' || intent.tries !== undefined);
    if (unsolved !== undefined) return this.#resolve(unsolved);
    const [ids, first] = [this.#ids, this.#decide()];
    const used = this.#ids;
    this.#ids = ids;
    if (JSON.stringify(this.#decide()) !== JSON.stringify(first))
      this.broken.push('the same view is decided otherwise');
    if (this.#ids !== used) this.broken.push('the same view takes other ids');
    if (first.kind === 'write') this.#put(first.status);
    if (first.kind !== 'begin') return JSON.stringify(this.status) !== before;
    this.#judgeTaken(first.status);
    this.#put(first.status);
    this.#call(first.intent, fate);
    return true;
  }

  sight(): CloudSnapshot {
    return { enis: new Map(this.cloud), isComplete: true };
  }

  /** The last decision, without its effect. */
  decide() {
    return this.#decide();
  }

  #decide() {
    return decideNode(this.view(), LEADER, this.ids);
  }

  #resolve(intent: Intent): boolean {
    const judgement = evaluateIntent(intent, this.sight(), this.status);
    if (judgement !== 'repeat') {
      this.#put(finishIntent(this.status, intent, judgement, this.ids, this.reserved()));
      return true;
    }
    this.#put(resendIntent(this.status, intent, LEADER.epoch));
    const again = this.status.intents?.find((one) => one.id === intent.id) ?? intent;
    this.#call(again, 'done');
    return true;
  }

  #call(intent: Intent, fate: CallFate): void {
    const error = { code: 'TEST', message: fate };
    const isDone = fate === 'done' || fate === 'lost-after';
    const done = isDone ? this.#effect(intent) : undefined;
    const outcome: IntentOutcome =
      fate === 'refused' ? { kind: 'refused', error } : (fate === 'done' && done) || { kind: 'unclear', error };
    const next = finishIntent(this.status, intent, outcome, this.ids, this.reserved());
    this.#put(next);
    if (outcome.kind !== 'unclear' && finishIntent(next, intent, outcome, this.ids) !== next) {
      this.broken.push('the same end twice changes something');
    }
  }

  /** Writes as the API server takes it: every check, and an epoch that grows with each change of the ENIs. */
  #put(status: NodeEniConfigStatus): void {
    const faults = new Faults();
    const config = {
      apiVersion: 'networking.tke.cloud.tencent.com/v1',
      kind: 'NodeENIConfig',
      metadata: { name: 'n1' },
    } as const;
    NODE_ENI_CONFIG_KIND.fields['status']?.decoder(structuredClone(status), 'status', faults);
    checkNodeEniConfig({ ...config, spec: this.spec, status }, faults);
    for (const fault of faults.list) this.broken.push(`${fault.path}: expected ${fault.expected}, got ${fault.got}`);
    const [old, now] = [this.status.supplyEpoch ?? 0, status.supplyEpoch ?? 0];
    const isChanged = JSON.stringify(status.eniInfos ?? []) !== JSON.stringify(this.status.eniInfos ?? []);
    if (now < old || (isChanged && now === old)) this.broken.push(`epoch ${old} becomes ${now}`);
    this.status = status;
  }

  /** What is taken out of use must have been offered, with the id of this assignment. */
  #judgeTaken(next: NodeEniConfigStatus): void {
    const stays = new Set(
      (next.eniInfos ?? [])
        .flatMap((eni) => eni.addresses ?? [])
        .flatMap((one) => (one.state === 'Assigned' ? [one.ip] : [])),
    );
    const offered = new Set((this.spec.releasableIPs ?? []).map((offer) => `${offer.ip}/${offer.assignmentID}`));
    for (const eni of this.status.eniInfos ?? []) {
      if (eni.state !== 'Attached' || this.leaving === 'force') continue;
      for (const { ip, assignmentID, state } of eni.addresses ?? []) {
        if (state !== 'Assigned' || stays.has(ip) || offered.has(`${ip}/${assignmentID}`)) continue;
        this.broken.push(`${ip} is taken and was not offered`);
      }
    }
  }

  #effect(intent: Intent): IntentOutcome | undefined {
    const before = this.#usedOf();
    const outcome = this.#change(intent);
    const after = this.#usedOf();
    if (this.isCounting) {
      for (const { subnetId } of SUBNETS) this.free[subnetId] += before[subnetId] - after[subnetId];
      if (SUBNETS.some(({ subnetId }) => this.free[subnetId] < 0)) this.broken.push('more is asked for than is free');
    }
    return outcome;
  }

  #usedOf() {
    const usedOf = (id: string) =>
      [...this.cloud.values()].reduce((sum, eni) => sum + (eni.subnetID === id ? 1 + eni.ips.length : 0), 0);
    return { 'subnet-a': usedOf('subnet-a'), 'subnet-b': usedOf('subnet-b') };
  }

  #change(intent: Intent): IntentOutcome | undefined {
    const { action, eniID = '' } = intent;
    this.#promised.clear();
    const eni = this.cloud.get(eniID);
    const put = (change: Partial<ObservedEni>): ObservedEni | undefined => {
      if (eni === undefined) return undefined;
      const next = { ...eni, ...change };
      this.cloud.set(eniID, next);
      return next;
    };
    switch (action) {
      case 'CreateNetworkInterface': {
        const known = [...this.cloud.values()].find((one) => one.name === intent.resourceName);
        const made = known ?? this.#make(intent);
        this.cloud.set(made.eniID, made);
        return { kind: 'done', result: { action, eni: made } };
      }
      case 'AttachNetworkInterface': {
        const bound = [...this.cloud.values()].filter((one) => one.instanceID !== undefined);
        if (bound.length >= MOST.secondaryEnis && eni?.instanceID === undefined)
          this.broken.push('more ENIs than places');
        const next = put({ instanceID: 'ins-1', deviceIndex: bound.length + 1 });
        return next === undefined ? undefined : { kind: 'done', result: { action, eni: next } };
      }
      case 'DetachNetworkInterface': {
        if (eni !== undefined) {
          const { instanceID: _on, deviceIndex: _at, ...free } = eni;
          this.cloud.set(eniID, free);
        }
        return { kind: 'done', result: { action } };
      }
      case 'DeleteNetworkInterface':
        if (eni?.instanceID !== undefined) this.broken.push(`${eniID} is deleted while bound`);
        this.cloud.delete(eniID);
        return { kind: 'done', result: { action } };
      case 'AssignPrivateIpAddresses': {
        const ips = intent.ips ?? Array.from({ length: intent.ipCount ?? 0 }, () => this.#ip(eni?.subnetID ?? ''));
        if (intent.ips?.some((ip) => this.#isTaken(ip)) === true) return TAKEN;
        const next = put({ ips: [...(eni?.ips ?? []), ...ips] });
        if ((next?.ips.length ?? 0) > MOST.secondaryIpsPerEni)
          this.broken.push(`${eniID} has more addresses than it may`);
        return { kind: 'done', result: { action, ips } };
      }
      case 'MigratePrivateIpAddress': {
        const [target, ips] = [this.cloud.get(intent.targetENIID ?? ''), intent.ips ?? []];
        if (target === undefined || !ips.every((ip) => this.elsewhere.get(ip) === eniID)) return TAKEN;
        for (const ip of ips) this.elsewhere.delete(ip);
        this.cloud.set(target.eniID, { ...target, ips: [...target.ips, ...ips] });
        if (target.ips.length + ips.length > MOST.secondaryIpsPerEni) this.broken.push('more than an ENI may have');
        return { kind: 'done', result: { action, ips } };
      }
      case 'UnassignPrivateIpAddresses':
        put({ ips: (eni?.ips ?? []).filter((ip) => intent.ips?.includes(ip) !== true) });
        return { kind: 'done', result: { action, ips: intent.ips ?? [] } };
      default: {
        const securityGroups = intent.securityGroups ?? [];
        put({ securityGroups });
        return { kind: 'done', result: { action: 'ModifyNetworkInterfaceAttribute', securityGroups } };
      }
    }
  }

  #make(intent: Intent): ObservedEni {
    const { subnetID = '', resourceName = '', ipCount = 0, securityGroups = ['sg-default'] } = intent;
    this.#serial += 1;
    const subnet = subnetID === 'subnet-a' ? 1 : 2;
    if (ipCount > MOST.secondaryIpsPerEni) this.broken.push('an ENI is born with more addresses than it may have');
    return {
      eniID: `eni-${this.#serial}`,
      mac: `20:90:6f:00:00:${(this.#serial % 256).toString(16).padStart(2, '0')}`,
      name: resourceName,
      primaryIP: this.#ip(subnetID),
      subnetID,
      subnetCIDR: `10.0.${subnet}.0/24`,
      gateway: `10.0.${subnet}.1`,
      state: 'AVAILABLE',
      securityGroups,
      ips: Array.from({ length: ipCount }, () => this.#ip(subnetID)),
      pendingIps: [],
    };
  }

  #isTaken(ip: string): boolean {
    const own = [...this.cloud.values()].some((eni) => eni.primaryIP === ip || eni.ips.includes(ip));
    return own || this.elsewhere.has(ip);
  }

  /** The lowest that is free: what goes back is given again at once. */
  #ip(subnetID: string): string {
    const subnet = subnetID === 'subnet-a' ? 1 : 2;
    const taken = new Set([...this.cloud.values()].flatMap((eni) => [eni.primaryIP, ...eni.ips]));
    for (let last = 2; ; last++) {
      const ip = `10.0.${subnet}.${last}`;
      if (taken.has(ip) || this.#promised.has(ip) || this.elsewhere.has(ip)) continue;
      this.#promised.add(ip);
      return ip;
    }
  }
}
