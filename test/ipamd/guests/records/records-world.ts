import type { NodeEniConfigStatus } from '../../../../crd/node-eni-config-fields.ts';
import { vpcIpName } from '../../../../crd/vpc-ip.ts';
import { type PodFacts, podKeyOf } from '../../../../ipamd/cache/pod-facts.ts';
import { type ClaimFacts, decodeClaim, decodeVip, type VipFacts } from '../../../../ipamd/cache/record-facts.ts';
import { decideRecords, type RecordsView, type RecordWrite } from '../../../../ipamd/guests/records/decide-records.ts';
import { renderClaim, renderPatch, renderVip } from '../../../../ipamd/guests/records/render-record.ts';
import type { KubeObject } from '../../../../kube/kube-client.ts';

/** A Pod on node n1 with one address. */
export function samplePod(change: Partial<PodFacts> = {}): PodFacts {
  return {
    namespace: 'default',
    name: 'web-0',
    uid: 'uid-1',
    nodeName: 'n1',
    ips: ['10.0.0.5'],
    phase: 'Running',
    isLeaving: false,
    annotations: {},
    ...change,
  };
}

/** A node's status with these addresses on one ENI, each with assignment id `a-<ip>`. */
export function sampleStatus(ips: readonly string[], eniID = 'eni-a'): NodeEniConfigStatus {
  const addresses = ips.map((ip) => ({ ip, assignmentID: `a-${ip}`, state: 'Assigned' as const }));
  return {
    eniInfos: [{ eniID, mac: '20:90:6f:00:00:01', state: 'Attached', subnetID: 'subnet-a', addresses }],
  };
}

/** A cluster's Pods, nodes and records, in which writes take effect at once. */
export class RecordsWorld {
  readonly pods = new Map<string, PodFacts>();
  readonly nodes = new Map<string, NodeEniConfigStatus>();
  readonly vips = new Map<string, KubeObject>();
  readonly claims = new Map<string, KubeObject>();
  readonly writes: RecordWrite['kind'][] = [];
  /** As with --pod-records=all. */
  hasClaims = true;
  #serial = 0;

  addPod(pod: PodFacts): void {
    this.pods.set(podKeyOf(pod), pod);
  }

  /** Deletes a Pod; the garbage collector takes what it owned, unless it is slow. */
  removePod(key: string, isCollected = true): void {
    const uid = this.pods.get(key)?.uid;
    this.pods.delete(key);
    const owners = this.claims.get(key)?.metadata.ownerReferences ?? [];
    if (isCollected && owners.some((owner) => owner.uid === uid)) this.claims.delete(key);
  }

  vipFacts(): readonly VipFacts[] {
    return [...this.vips.values()].map(decodeVip);
  }

  claimFacts(): readonly ClaimFacts[] {
    return [...this.claims.values()].map(decodeClaim);
  }

  view(nodeName: string, lingering: ReadonlySet<string> = new Set()): RecordsView {
    const factsOf = <T>(object: KubeObject | undefined, decode: (one: KubeObject) => T): T | undefined =>
      object === undefined ? undefined : decode(object);
    return {
      hasClaims: this.hasClaims,
      pods: [...this.pods.values()].filter((pod) => pod.nodeName === nodeName),
      status: this.nodes.get(nodeName),
      vips: this.vipFacts().filter((vip) => vip.nodeName === nodeName),
      claims: this.claimFacts().filter((claim) => claim.nodeName === nodeName),
      podOf: (key) => this.pods.get(key),
      vipOf: (name) => factsOf(this.vips.get(name), decodeVip),
      claimOf: (key) => factsOf(this.claims.get(key), decodeClaim),
      lingering,
    };
  }

  /** Decides for a node and does what was decided; returns what. */
  step(nodeName: string, lingering?: ReadonlySet<string>): readonly RecordWrite[] {
    const { writes } = decideRecords(this.view(nodeName, lingering));
    for (const write of writes) this.#apply(write);
    return writes;
  }

  /** Steps over all nodes until nothing changes; returns false when that does not happen. */
  settle(nodeNames: readonly string[], lingering?: ReadonlySet<string>): boolean {
    for (let round = 0; round < 10; round++) {
      if (nodeNames.flatMap((name) => this.step(name, lingering)).length === 0) return true;
    }
    return false;
  }

  #apply(write: RecordWrite): void {
    this.writes.push(write.kind);
    switch (write.kind) {
      case 'create-claim':
        create(this.claims, podKeyOf(write.record.pod), this.#versioned(renderClaim(write.record)));
        break;
      case 'create-vip':
        create(this.vips, vpcIpName(write.ip.ip), this.#versioned(renderVip(write.record, write.ip)));
        break;
      case 'update-claim':
        this.#patch(this.claims, write.claim.key, renderPatch(renderClaim(write.record), write.claim.resourceVersion));
        break;
      case 'update-vip':
        this.#patch(
          this.vips,
          write.vip.name,
          renderPatch(renderVip(write.record, write.ip), write.vip.resourceVersion),
        );
        break;
      case 'delete-claim':
        if (!this.claims.delete(write.claim.key)) throw new Error(`no claim ${write.claim.key}`);
        break;
      case 'delete-vip':
        if (!this.vips.delete(write.vip.name)) throw new Error(`no vip ${write.vip.name}`);
        break;
    }
  }

  #versioned(object: KubeObject, uid?: string): KubeObject {
    this.#serial += 1;
    const metadata = { uid: uid ?? `o-${this.#serial}`, ...object.metadata, resourceVersion: String(this.#serial) };
    return { ...object, metadata };
  }

  #patch(objects: Map<string, KubeObject>, key: string, patch: object): void {
    const old = objects.get(key);
    if (old === undefined) throw new Error(`no ${key}`);
    const { metadata, spec, status } = patch as KubeObject & { readonly spec: object; readonly status: object };
    if (metadata.resourceVersion !== old.metadata.resourceVersion) throw new Error(`conflict over ${key}`);
    objects.set(
      key,
      this.#versioned({
        ...old,
        metadata: { ...old.metadata, ...metadata },
        spec: { ...(old['spec'] as object), ...spec },
        status: { ...(old['status'] as object), ...status },
      }),
    );
  }
}

function create(objects: Map<string, KubeObject>, key: string, object: KubeObject): void {
  if (objects.has(key)) throw new Error(`${key} exists`);
  objects.set(key, object);
}
