import { copyFileSync, existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { isObject, type JsonObject } from '../../sim/support/netns.ts';
import { createTempDir } from './temp-dir.ts';

/** A lease as the journal's rows tell it. */
export type LeaseFacts = {
  readonly key: string;
  readonly containerId: string;
  readonly ifName: string;
  readonly state: string;
  readonly plugin: string;
  readonly netns: string;
  readonly eniId: string;
  readonly ips: readonly string[];
  readonly hostVeth?: { readonly name: string; readonly mac: string; readonly ifindex: number | undefined };
  readonly podMac?: string;
  /** Of a GlobalRoute Pod. */
  readonly block?: { readonly cidr: string; readonly wiring: string };
  /** Of a Pod with a whole ENI. */
  readonly nic?: { readonly hostName: string; readonly sideMac: string; readonly gateways: readonly string[] };
  readonly mtu: number;
  /** True for one whose rules another plugin keeps. */
  readonly hasUplink: boolean;
};

/** All that the invariants need of a journal. */
export type JournalFacts = {
  readonly leases: readonly LeaseFacts[];
  readonly cooling: readonly string[];
  readonly enis: readonly { readonly eniId: string; readonly table: number; readonly slot: number }[];
  /** Addresses of shared ENIs that the supply has and that are not offered for release. */
  readonly assigned: readonly string[];
  /** Contradictions inside the journal itself. */
  readonly faults: readonly string[];
};

/**
 * Reads the agent's journal with SQLite and JSON, not with the agent's decoders. A copy is read, for a running agent
 * holds the file locked; ask at a quiet moment.
 */
export function readJournalFacts(path: string): JournalFacts {
  const dir = createTempDir('journal');
  try {
    const copy = dir.join(basename(path));
    copyFileSync(path, copy);
    // A half transaction is rolled back on opening only when its rollback journal lies beside.
    const rollback = join(dirname(path), `${basename(path)}-journal`);
    if (existsSync(rollback)) copyFileSync(rollback, `${copy}-journal`);
    using database = new DatabaseSync(copy);
    return factsOf(database);
  } finally {
    dir.close();
  }
}

function factsOf(database: DatabaseSync): JournalFacts {
  const rows = (sql: string): readonly JsonObject[] => database.prepare(sql).all();
  const leases = rows('SELECT key, body FROM lease ORDER BY key').map(leaseOf);
  const owners = rows('SELECT ip, lease_key FROM lease_address').map((row) => `${row['ip']} ${row['lease_key']}`);
  const claimed = leases.flatMap(({ ips, key }) => ips.map((ip) => `${ip} ${key}`));
  const cooling = rows('SELECT ip FROM cooldown').map((row) => String(row['ip']));
  const leased = leases.flatMap(({ ips }) => ips);
  const offered = rows('SELECT body FROM offer').map((row) => assignmentOf(parse(row)));
  const supplied = rows("SELECT body FROM meta WHERE name = 'supply'").flatMap((row) => listOf(parse(row)['enis']));
  return {
    leases,
    cooling,
    enis: rows('SELECT eni_id, table_id, slot FROM eni').map((row) => ({
      eniId: String(row['eni_id']),
      table: Number(row['table_id']),
      slot: Number(row['slot']),
    })),
    assigned: supplied
      .filter(({ eniId }) => eniId !== 'on-link')
      .flatMap(({ addresses }) => listOf(addresses))
      .filter((address) => address['state'] === 'assigned' && !offered.includes(assignmentOf(address)))
      .map(({ ip }) => String(ip)),
    faults: [
      ...leased
        .filter((ip, index) => leased.indexOf(ip) !== index)
        .map(
          (ip) => `journal: ${ip} has more than one lease: ${claimed.filter((claim) => claim.startsWith(`${ip} `))}`,
        ),
      ...cooling.filter((ip) => leased.includes(ip)).map((ip) => `journal: ${ip} is leased and cooling at once`),
      ...owners
        .filter((owner) => !claimed.includes(owner))
        .map((owner) => `journal: no lease claims address row ${owner}`),
      ...claimed
        .filter((claim) => !owners.includes(claim))
        .map((claim) => `journal: lease without address row: ${claim}`),
    ],
  };
}

function parse(row: JsonObject): JsonObject {
  const body: unknown = JSON.parse(String(row['body']));
  return isObject(body) ? body : {};
}

function listOf(list: unknown): readonly JsonObject[] {
  return Array.isArray(list) ? list.filter(isObject) : [];
}

function assignmentOf({ ip, assignmentId }: JsonObject): string {
  return `${String(ip)} ${String(assignmentId)}`;
}

function leaseOf(row: JsonObject): LeaseFacts {
  const body: unknown = JSON.parse(String(row['body']));
  if (!isObject(body)) throw new Error(`lease ${String(row['key'])}: its body is no object`);
  const addresses = Array.isArray(body['addresses']) ? body['addresses'].filter(isObject) : [];
  const veth = body['hostVeth'];
  return {
    key: String(row['key']),
    containerId: String(body['containerId']),
    ifName: String(body['ifName']),
    state: String(body['state']),
    plugin: String(body['plugin']),
    netns: String(body['netns']),
    eniId: String(body['eniId']),
    ips: addresses.map((address) => String(address['ip'])),
    mtu: Number(body['mtu']),
    hasUplink: body['uplink'] === true,
    ...(body['podMac'] === undefined ? {} : { podMac: String(body['podMac']) }),
    ...(isObject(body['block'])
      ? { block: { cidr: String(body['block']['cidr']), wiring: String(body['block']['wiring']) } }
      : {}),
    ...(isObject(body['nic']) ? { nic: nicOf(body['nic']) } : {}),
    ...(isObject(veth)
      ? {
          hostVeth: {
            name: String(veth['name']),
            mac: String(veth['mac']),
            ifindex: veth['ifindex'] === undefined ? undefined : Number(veth['ifindex']),
          },
        }
      : {}),
  };
}

function nicOf(nic: JsonObject): NonNullable<LeaseFacts['nic']> {
  const primary = Array.isArray(nic['primary']) ? nic['primary'].filter(isObject) : [];
  return {
    hostName: String(nic['hostName']),
    sideMac: String(nic['sideMac']),
    gateways: primary.map(({ gateway }) => String(gateway)),
  };
}
