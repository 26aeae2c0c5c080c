import { CLOUD_FINALIZER } from '../../../../crd/names.ts';
import { type VpcIp, vpcIp, vpcIpName } from '../../../../crd/vpc-ip.ts';
import { type VpcIpClaim, vpcIpClaim } from '../../../../crd/vpc-ip-claim.ts';
import type { ClaimRequest } from '../../../../ipamd/decide/claim-request.ts';
import type { ClaimDecision } from '../../../../ipamd/guests/static/claim-decision.ts';
import type { ClaimLocation, ClaimPod, ClaimView } from '../../../../ipamd/guests/static/claim-view.ts';
import { decideClaim } from '../../../../ipamd/guests/static/decide-claim.ts';
import { renderClaim, renderVip } from '../../../../ipamd/guests/static/render-claim.ts';
import { ClaimRequests } from '../../../../ipamd/nodes/claim-requests.ts';
import { withoutFinalizer } from '../../../../kube/finalizers.ts';
import type { KubeObject } from '../../../../kube/kube-client.ts';
import { decodeOrThrow } from '../../../../runtime/decode.ts';

type Mark = { ip: string; key: string; uid: string | undefined; isReleasing: boolean; isOffered: boolean };
type WorldNode = { readonly zone: string; isAlive: boolean; deadSinceMs: number; marks: Mark[] };
type WorldPod = { readonly uid: string; nodeName: string };
type Sandbox = { readonly key: string; readonly uid: string; readonly node: string; readonly ip: string };

/** Half a minute to look at a node twice, five minutes until an address expires. */
const TAKE_OVER_MS = 60_000;
/** How long an address rests before another name may have it. */
const REST_MS = 120_000;
/** How long addresses are kept here. */
export const EXPIRED_MS = 300_000;

/**
 * The simplest cluster in which a claim can have a history: what a node's turn, an agent and a kubelet do is a line each.
 * Decisions, what they write and the book are the product's.
 */
export class ClaimWorld {
  readonly nodes = new Map<string, WorldNode>();
  readonly pods = new Map<string, WorldPod>();
  readonly sandboxes = new Map<string, Sandbox>();
  readonly claims = new Map<string, KubeObject>();
  readonly vips = new Map<string, KubeObject>();
  /** The node whose ENI an address is on. */
  readonly cloud = new Map<string, string>();
  /** The address that a name was last served with, until its claim ends. */
  readonly promised = new Map<string, string>();
  readonly faults: string[] = [];
  /** How many writes of the next decisions are made until ipamd is killed; undefined: all. */
  writesLeft: number | undefined;
  nowMs = Date.UTC(2026, 0, 1);
  /** Sandboxes whose address was withdrawn while their node was away for long. */
  readonly #cut = new Set<string>();
  /** Which name an address served last, and until when. */
  readonly #lastOf = new Map<string, { readonly key: string; readonly untilMs: number }>();
  /** When a claim's address may have had a sandbox last. */
  readonly #usedMs = new Map<string, number>();
  #book = new ClaimRequests();
  #serial = 0;
  #kinds: readonly string[];

  constructor(zones: Readonly<Record<string, string>>, kinds: readonly string[] = []) {
    this.#kinds = kinds;
    for (const [name, zone] of Object.entries(zones)) {
      this.nodes.set(name, { zone, isAlive: true, deadSinceMs: 0, marks: [] });
    }
  }

  createPod(key: string, nodeName: string): void {
    if (!this.pods.has(key)) this.pods.set(key, { uid: `uid-${++this.#serial}`, nodeName });
  }

  schedule(key: string, nodeName: string): void {
    const pod = this.pods.get(key);
    if (pod?.nodeName === '') pod.nodeName = nodeName;
  }

  /** In order, the sandbox ends first; by force it lives on until its kubelet hears of it. */
  deletePod(key: string, isForced: boolean): void {
    const pod = this.pods.get(key);
    const node = this.nodes.get(pod?.nodeName ?? '');
    // The kubelet of a dead node ends nothing.
    if (!isForced && node?.isAlive === false) return;
    if (pod !== undefined && !isForced) this.sandboxes.delete(pod.uid);
    this.pods.delete(key);
  }

  /** The kubelet ends what the API server has no Pod for. */
  kubelet(name: string): void {
    if (this.nodes.get(name)?.isAlive !== true) return;
    for (const [uid, { key, node }] of this.sandboxes) {
      if (node === name && this.pods.get(key)?.uid !== uid) this.sandboxes.delete(uid);
    }
  }

  setAlive(name: string, isAlive: boolean): void {
    const node = this.nodes.get(name);
    if (node === undefined || node.isAlive === isAlive) return;
    node.isAlive = isAlive;
    node.deadSinceMs = this.nowMs;
  }

  deleteObject(kind: 'claims' | 'vips', key: string): void {
    const name = kind === 'vips' ? this.vipsOf(key)[0]?.metadata.name : key;
    if (name !== undefined) this.#delete(this[kind], name);
  }

  restart(): void {
    this.#book = new ClaimRequests();
    this.writesLeft = undefined;
  }

  /** ipamd looks at a claim. */
  decide(key: string): void {
    const claim = this.claims.get(key);
    const decision = decideClaim(this.viewOf(key));
    if (!this.#write(key, claim, decision)) {
      this.restart();
      return;
    }
    const ips = this.vipsOf(key).map(({ spec }) => spec.ip);
    this.#book.set(key, decision.requests, ips);
  }

  decideAll(): void {
    const keys = new Set([...this.pods.keys(), ...this.claims.keys()]);
    for (const vip of this.vips.values()) keys.add(keyOfVip(vip));
    for (const { marks } of this.nodes.values()) for (const { key } of marks) keys.add(key);
    for (const key of keys) this.decide(key);
    this.#book.complete();
  }

  /** A node's turn: its marks as wished, what was let go of off its ENI, what is wished onto it. */
  turn(name: string): void {
    const node = this.nodes.get(name);
    const wishes = this.#book.requestsOf(name);
    if (node === undefined || wishes === undefined) return;
    for (const mark of [...node.marks]) this.#turnMark(name, mark, wishes.get(mark.key));
    for (const wish of wishes.values()) if (wish.goal === 'here') this.#fulfil(name, node, wish);
  }

  #turnMark(name: string, mark: Mark, wish: ClaimRequest | undefined): void {
    if (wish === undefined) return;
    const uid = wish.goal === 'here' ? wish.podUid : undefined;
    if (!mark.isReleasing) mark.uid = uid;
    const lets = wish.goal === 'elsewhere' || wish.goal === 'free';
    if (lets && (mark.isOffered || wish.mayTakeOver === true)) {
      mark.isReleasing = true;
      mark.uid = undefined;
    }
    const user = [...this.sandboxes.values()].find((one) => one.node === name && one.ip === mark.ip);
    if (mark.isReleasing && wish.mayTakeOver === true && user !== undefined) this.#cut.add(user.uid);
    if (!mark.isReleasing || (wish.goal === 'elsewhere' && wish.willMigrate === true)) return;
    this.#take(name, mark.ip);
    if (this.cloud.get(mark.ip) === name) this.cloud.delete(mark.ip);
  }

  #fulfil(name: string, node: WorldNode, { key, ip, podUid, source }: ClaimRequest): void {
    if (node.marks.some((one) => one.key === key)) return;
    const mark = (given: string): void => {
      this.cloud.set(given, name);
      node.marks.push({ ip: given, key, uid: podUid, isReleasing: false, isOffered: false });
    };
    const from = this.nodes.get(source?.nodeName ?? '');
    if (ip === undefined) {
      mark(this.#freeIp(node.zone));
    } else if (source === undefined) {
      if (!this.cloud.has(ip)) mark(ip);
    } else if (source.isReleased && from !== undefined && this.cloud.get(ip) === source.nodeName) {
      this.#take(source.nodeName, ip);
      mark(ip);
    }
  }

  /** An address goes off a node's ENI: never from under a sandbox, but where the node has been away for long. */
  #take(name: string, ip: string): void {
    const node = this.nodes.get(name);
    if (node === undefined) return;
    const isLong = !node.isAlive && this.nowMs - node.deadSinceMs >= TAKE_OVER_MS;
    const user = [...this.sandboxes.values()].find((one) => one.node === name && one.ip === ip);
    const wasCut = user !== undefined && this.#cut.has(user.uid);
    if (user !== undefined && !isLong && !wasCut) this.faults.push(`${ip} was taken from ${user.key} on node ${name}`);
    node.marks = node.marks.filter((one) => one.ip !== ip);
  }

  #freeIp(zone: string): string {
    const reserved = this.#book.reservedIps();
    for (let last = 10; ; last++) {
      const ip = `${zone === 'z1' ? '10.1' : '10.2'}.0.${last}`;
      if (!this.cloud.has(ip) && !reserved.has(ip) && !this.vips.has(ip)) return ip;
    }
  }

  /** An agent starts what its marks allow, and offers what no sandbox and no Pod has. */
  agent(name: string): void {
    const node = this.nodes.get(name);
    if (node?.isAlive !== true) return;
    // What was taken over while the node was away has no routes any more.
    for (const [uid, one] of this.sandboxes) {
      const isTaken = !node.marks.some(({ ip }) => ip === one.ip);
      if (one.node === name && isTaken) this.sandboxes.delete(uid);
    }
    for (const mark of node.marks) {
      const holder = [...this.sandboxes.values()].find((one) => one.node === name && one.ip === mark.ip);
      const pod = this.pods.get(mark.key);
      const mayStart = pod?.nodeName === name && mark.uid === pod.uid && !mark.isReleasing && !mark.isOffered;
      if (mayStart && holder === undefined) {
        this.sandboxes.set(pod.uid, { key: mark.key, uid: pod.uid, node: name, ip: mark.ip });
        this.#judgeStart(mark);
      } else mark.isOffered = holder === undefined && mark.uid === undefined;
    }
    this.judge();
  }

  #judgeStart({ key, ip }: Mark): void {
    const promised = this.promised.get(key);
    if (promised !== undefined && promised !== ip) this.faults.push(`${key} had ${promised} and got ${ip}`);
    this.promised.set(key, ip);
    const last = this.#lastOf.get(ip);
    if (last !== undefined && last.key !== key && this.nowMs - last.untilMs < REST_MS)
      this.faults.push(`${key} has ${ip} ${this.nowMs - last.untilMs} ms after ${last.key}`);
  }

  /** No address is live twice: on a node that answers, with the cloud's routes. */
  judge(): void {
    const live = [...this.sandboxes.values()].filter(
      ({ node, ip }) => this.nodes.get(node)?.isAlive === true && this.cloud.get(ip) === node,
    );
    for (const { key, ip } of live) this.#lastOf.set(ip, { key, untilMs: this.nowMs });
    const ips = live.map(({ ip }) => ip);
    if (new Set(ips).size !== ips.length) this.faults.push(`live twice: ${ips.join(' ')}`);
    const lost = live.filter(({ key, ip, node }) => {
      const mark = this.nodes.get(node)?.marks.find((one) => one.ip === ip);
      return mark === undefined || mark.key !== key;
    });
    for (const { key, ip } of lost) this.faults.push(`${key} uses ${ip}, which is not marked as its own`);
  }

  /** What runs in the eyes of everybody has a mark that says so. */
  judgeRest(): void {
    for (const [name, { uid, nodeName }] of this.pods) {
      const sandbox = this.sandboxes.get(uid);
      const mark = this.nodes.get(nodeName)?.marks.find((one) => one.key === name && one.ip === sandbox?.ip);
      if (sandbox !== undefined && mark?.uid !== uid) this.faults.push(`${name} runs, and its mark does not name it`);
    }
  }

  /** Everybody does their work until nothing changes any more. */
  settle(rounds = 30): void {
    for (let round = 0; round < rounds; round++) {
      this.decideAll();
      for (const name of this.nodes.keys()) {
        this.kubelet(name);
        this.turn(name);
        this.agent(name);
      }
      this.nowMs += 5_000;
    }
    this.decideAll();
  }

  viewOf(key: string): ClaimView {
    const nodes = this.nodes;
    const locations = [...nodes].flatMap(([nodeName, { marks, zone }]): readonly ClaimLocation[] =>
      marks
        .filter((one) => one.key === key)
        .map(({ ip, uid, isReleasing }) => ({
          nodeName,
          eniId: `eni-${nodeName}`,
          mode: 'route-eni',
          subnetId: `subnet-${zone}`,
          isAttached: true,
          ip,
          assignmentId: `${nodeName}-${ip}`,
          isReleasing,
          podUid: uid,
        })),
    );
    const claim = this.claims.get(key);
    const decoded: VpcIpClaim | undefined = claim === undefined ? undefined : decodeOrThrow(vpcIpClaim, claim, key);
    const since = decoded?.status?.retainedSince;
    const mayRun = [...nodes.values()].some(
      ({ marks, isAlive, deadSinceMs }) =>
        (isAlive || this.nowMs - deadSinceMs < TAKE_OVER_MS) &&
        marks.some((one) => one.key === key && !one.isReleasing && (one.uid !== undefined || !one.isOffered)),
    );
    if (mayRun) this.#usedMs.set(key, this.nowMs);
    const restMs = (this.#usedMs.get(key) ?? 0) + REST_MS - this.nowMs;
    return {
      key,
      claim: decoded,
      vips: this.vipsOf(key),
      pod: this.#podOf(key),
      locations,
      calls: [],
      nodeOf: (name) => this.#sightOf(name),
      zoneOf: (subnetId) => subnetId.slice('subnet-'.length),
      subnetOf: (ip) => (ip.startsWith('10.1.') ? 'subnet-z1' : 'subnet-z2'),
      holderOf: (ip) => {
        const vip = this.vips.get(vpcIpName(ip));
        const owner = vip === undefined ? undefined : keyOfVip(vip);
        const marked = [...nodes.values()]
          .flatMap(({ marks }) => marks)
          .find((one) => one.ip === ip && one.key !== key);
        const other = owner !== undefined && owner !== key ? owner : marked?.key;
        return other === undefined ? undefined : { kind: 'claim', key: other };
      },
      wait: undefined,
      conflict: undefined,
      hasEni: false,
      releasingForMs: 0,
      ...(restMs > 0 ? { restMs } : {}),
      retainedForMs: since === undefined ? 0 : this.nowMs - Date.parse(since),
      defaultExpiredMs: EXPIRED_MS,
      takeOverAfterMs: TAKE_OVER_MS,
      isOffered: () => true,
      nowText: new Date(this.nowMs).toISOString(),
    };
  }

  vipsOf(key: string): readonly VpcIp[] {
    const own = [...this.vips.values()].filter((vip) => keyOfVip(vip) === key);
    return own.map((vip) => decodeOrThrow(vpcIp, vip, vip.metadata.name));
  }

  #podOf(key: string): ClaimPod | undefined {
    const pod = this.pods.get(key);
    if (pod === undefined) return undefined;
    const asks = this.#kinds.includes('nominated') && key === 'ns/web-0' ? { nominatedIp: '10.1.0.200' } : {};
    return { ...pod, labels: {}, rule: { mode: 'route-eni', isStatic: true, faults: [], ...asks } };
  }

  #sightOf(name: string) {
    const node = this.nodes.get(name);
    const unreachableForMs = node?.isAlive === true ? 0 : Math.max(1, this.nowMs - (node?.deadSinceMs ?? 0));
    const subnetsWithFreeSlots = new Set(node === undefined ? [] : [`subnet-${node.zone}`]);
    return {
      exists: node !== undefined,
      enableStaticIp: true,
      zone: node?.zone,
      unreachableForMs,
      subnetsWithFreeSlots,
    };
  }

  /** Returns false when ipamd is killed before it has made all its writes. */
  #write(key: string, current: KubeObject | undefined, { claim, vips }: ClaimDecision): boolean {
    const writes: (() => void)[] = [];
    const now = new Date(this.nowMs).toISOString();
    const [namespace = '', name = ''] = key.split('/');
    const claimWrite = (): void => {
      if (claim === undefined) return;
      if (claim.kind === 'delete') this.#delete(this.claims, key);
      else if (claim.kind === 'finish')
        this.#put(this.claims, key, current && withoutFinalizer(current, CLOUD_FINALIZER));
      else {
        const object = renderClaim({ namespace, name, owner: undefined }, claim.desired, current, now);
        this.#put(
          this.claims,
          key,
          current === undefined ? { ...object, metadata: { ...object.metadata, uid: this.#uid() } } : object,
        );
      }
    };
    if (claim?.kind === 'create') writes.push(claimWrite);
    for (const write of vips) {
      if (write.kind === 'end') {
        const ended = write.vip.metadata.name;
        writes.push(
          () => this.#delete(this.vips, ended),
          () => {
            const there = this.vips.get(ended);
            this.#put(this.vips, ended, there && withoutFinalizer(there, CLOUD_FINALIZER));
          },
        );
        continue;
      }
      const { desired, vip } = write;
      const there = this.vips.get(vpcIpName(desired.ip));
      if (vip === undefined && there !== undefined) {
        this.faults.push(`${key} would write over ${there.metadata.name}`);
        continue;
      }
      writes.push(() => this.#put(this.vips, vpcIpName(desired.ip), renderVip(key, desired, there, now)));
    }
    if (claim !== undefined && claim.kind !== 'create') writes.push(claimWrite);
    for (const write of writes) {
      if (this.writesLeft === 0) return false;
      if (this.writesLeft !== undefined) this.writesLeft -= 1;
      write();
    }
    return true;
  }

  #uid(): string {
    return `claim-${++this.#serial}`;
  }

  #put(store: Map<string, KubeObject>, key: string, object: KubeObject | undefined): void {
    if (object === undefined) return;
    const { deletionTimestamp, finalizers = [] } = object.metadata;
    if (deletionTimestamp !== undefined && finalizers.length === 0) this.#gone(store, key);
    else store.set(key, object);
  }

  #delete(store: Map<string, KubeObject>, key: string): void {
    const object = store.get(key);
    if (object === undefined || object.metadata.deletionTimestamp !== undefined) return;
    const deletionTimestamp = new Date(this.nowMs).toISOString();
    this.#put(store, key, { ...object, metadata: { ...object.metadata, deletionTimestamp } });
  }

  #gone(store: Map<string, KubeObject>, key: string): void {
    store.delete(key);
    // A name without a claim was promised nothing.
    if (store === this.claims) this.promised.delete(key);
  }
}

function keyOfVip(vip: KubeObject): string {
  const { claimRef } = decodeOrThrow(vpcIp, vip, vip.metadata.name).spec;
  return claimRef === undefined ? '' : `${claimRef.namespace}/${claimRef.name}`;
}
