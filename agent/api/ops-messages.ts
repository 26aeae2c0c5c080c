import type { InitOf, MessageOf, MessageTable } from './codec.ts';

// The tables of ops.proto, in its order; a test compares both. Names are proto's in camelCase.

/** Asks for the addresses of the node. */
export const POOL_REQUEST = {
  clientVersion: { number: 1, type: 'string' },
} as const satisfies MessageTable;

/** Tells what an address is: the numbers of `enum AddressState`. */
export const ADDRESS_STATE = {
  ADDRESS_STATE_UNSPECIFIED: 0,
  ADDRESS_STATE_FREE: 1,
  ADDRESS_STATE_IN_USE: 2,
  ADDRESS_STATE_COOLING: 3,
  ADDRESS_STATE_OFFERED: 4,
  ADDRESS_STATE_RELEASING: 5,
  ADDRESS_STATE_UNREADY: 6,
  ADDRESS_STATE_KEPT: 7,
} as const;

/** Describes one address of the node, and who has it. */
export const POOL_ADDRESS = {
  ip: { number: 1, type: 'string' },
  family: { number: 2, type: 'uint32' },
  eniId: { number: 3, type: 'string' },
  state: { number: 4, type: 'enum' },
  containerId: { number: 5, type: 'string' },
  ifName: { number: 6, type: 'string' },
  podNamespace: { number: 7, type: 'string' },
  podName: { number: 8, type: 'string' },
  coolRemainingMs: { number: 9, type: 'uint64' },
  assignmentId: { number: 10, type: 'string' },
  unlisted: { number: 11, type: 'bool' },
  pairedIp: { number: 12, type: 'string' },
  keptFor: { number: 13, type: 'string' },
  keptUid: { number: 14, type: 'string' },
} as const satisfies MessageTable;

/** Describes one ENI of the node. */
export const POOL_ENI = {
  eniId: { number: 1, type: 'string' },
  ifname: { number: 2, type: 'string' },
  ifindex: { number: 3, type: 'uint32' },
  table: { number: 4, type: 'uint32' },
  slot: { number: 5, type: 'uint32' },
  mac: { number: 6, type: 'string' },
  ready: { number: 7, type: 'bool' },
  problem: { number: 8, type: 'string' },
  draining: { number: 9, type: 'bool' },
  attached: { number: 10, type: 'bool' },
  addresses: { number: 11, type: 'uint32' },
  inUse: { number: 12, type: 'uint32' },
  free: { number: 13, type: 'uint32' },
  primaryIps: { number: 14, type: 'string', repeated: true },
  subnetCidrs: { number: 15, type: 'string', repeated: true },
  deviceIndex: { number: 16, type: 'uint32' },
} as const satisfies MessageTable;

/** Names an ADD that waits for an address. */
export const WAITING_ADD = {
  containerId: { number: 1, type: 'string' },
  ifName: { number: 2, type: 'string' },
  podNamespace: { number: 3, type: 'string' },
  podName: { number: 4, type: 'string' },
} as const satisfies MessageTable;

/** Answers POOL_REQUEST. */
export const POOL_REPLY = {
  addresses: { number: 1, type: 'message', message: POOL_ADDRESS, repeated: true },
  enis: { number: 2, type: 'message', message: POOL_ENI, repeated: true },
  warmMin: { number: 3, type: 'uint32' },
  warmMax: { number: 4, type: 'uint32' },
  limit: { number: 5, type: 'uint32' },
  demand: { number: 6, type: 'uint32' },
  waiting: { number: 7, type: 'message', message: WAITING_ADD, repeated: true },
  supplyEpoch: { number: 8, type: 'uint64' },
  supplyProblem: { number: 9, type: 'string' },
  families: { number: 10, type: 'uint32', repeated: true },
  hasSupply: { number: 11, type: 'bool' },
  cooldownMs: { number: 12, type: 'uint64' },
  agentVersion: { number: 13, type: 'string' },
} as const satisfies MessageTable;

/** Asks how the agent is. */
export const SUMMARY_REQUEST = {
  clientVersion: { number: 1, type: 'string' },
} as const satisfies MessageTable;

/** Reports how something stands in CNI's terms; code 0 is success. */
export const OPS_STATUS = {
  code: { number: 1, type: 'uint32' },
  msg: { number: 2, type: 'string' },
  details: { number: 3, type: 'string' },
} as const satisfies MessageTable;

/** Counts calls that took longer than the bucket before allows, and at most `upToUs`; 0 is without a bound. */
export const LATENCY_BUCKET = {
  upToUs: { number: 1, type: 'uint64' },
  count: { number: 2, type: 'uint64' },
} as const satisfies MessageTable;

/** Counts the calls of one verb. */
export const CALL_STATS = {
  verb: { number: 1, type: 'string' },
  total: { number: 2, type: 'uint64' },
  failed: { number: 3, type: 'uint64' },
  sumUs: { number: 4, type: 'uint64' },
  buckets: { number: 5, type: 'message', message: LATENCY_BUCKET, repeated: true },
} as const satisfies MessageTable;

/** Tells what the agent may ask of the API server. */
export const API_BUDGET = {
  qps: { number: 1, type: 'uint32' },
  burst: { number: 2, type: 'uint32' },
  calls: { number: 3, type: 'uint64' },
  failed: { number: 4, type: 'uint64' },
  throttled: { number: 5, type: 'uint64' },
  throttledMs: { number: 6, type: 'uint64' },
  silenceMs: { number: 7, type: 'uint64' },
  heard: { number: 8, type: 'bool' },
  tokensLeft: { number: 9, type: 'uint32' },
} as const satisfies MessageTable;

/** Answers SUMMARY_REQUEST. */
export const SUMMARY_REPLY = {
  agentVersion: { number: 1, type: 'string' },
  nodeName: { number: 2, type: 'string' },
  uptimeMs: { number: 3, type: 'uint64' },
  ruleMode: { number: 4, type: 'string' },
  status: { number: 5, type: 'message', message: OPS_STATUS },
  leasesPending: { number: 6, type: 'uint32' },
  leasesActive: { number: 7, type: 'uint32' },
  leasesReleasing: { number: 8, type: 'uint32' },
  calls: { number: 9, type: 'message', message: CALL_STATS, repeated: true },
  drift: { number: 10, type: 'uint64' },
  repaired: { number: 11, type: 'uint64' },
  passes: { number: 12, type: 'uint64' },
  fights: { number: 13, type: 'uint64' },
  held: { number: 14, type: 'string', repeated: true },
  conflicts: { number: 15, type: 'string', repeated: true },
  api: { number: 16, type: 'message', message: API_BUDGET },
  journalOrigin: { number: 17, type: 'string' },
  lastPassAgeMs: { number: 18, type: 'uint64' },
  lastPassError: { number: 19, type: 'string' },
  lastPassCause: { number: 20, type: 'string' },
  overruns: { number: 21, type: 'uint64' },
  forcedReuse: { number: 22, type: 'uint64' },
  watchers: { number: 23, type: 'uint32' },
  supplySource: { number: 24, type: 'string' },
  supplyEpoch: { number: 25, type: 'uint64' },
} as const satisfies MessageTable;

/** Asks for a repair pass, or with `dryRun` for what one would do. */
export const REPAIR_REQUEST = {
  dryRun: { number: 1, type: 'bool' },
  clientVersion: { number: 2, type: 'string' },
  ruleMode: { number: 3, type: 'string' },
} as const satisfies MessageTable;

/** Describes one stage of a change of rule mode; packets flow between any two. */
export const MIGRATION_STAGE = {
  what: { number: 1, type: 'string' },
  operations: { number: 2, type: 'string', repeated: true },
} as const satisfies MessageTable;

/** Describes an operation that the kernel refused. */
export const FAILED_OPERATION = {
  operation: { number: 1, type: 'string' },
  error: { number: 2, type: 'string' },
} as const satisfies MessageTable;

/** Answers REPAIR_REQUEST. */
export const REPAIR_REPLY = {
  operations: { number: 1, type: 'string', repeated: true },
  failed: { number: 2, type: 'message', message: FAILED_OPERATION, repeated: true },
  held: { number: 3, type: 'string', repeated: true },
  conflicts: { number: 4, type: 'string', repeated: true },
  error: { number: 5, type: 'message', message: OPS_STATUS },
  dryRun: { number: 6, type: 'bool' },
  durationUs: { number: 7, type: 'uint64' },
  agentVersion: { number: 8, type: 'string' },
  stages: { number: 9, type: 'message', message: MIGRATION_STAGE, repeated: true },
} as const satisfies MessageTable;

/** Tells what happened: the numbers of `enum EventKind`. */
export const EVENT_KIND = {
  EVENT_KIND_UNSPECIFIED: 0,
  EVENT_KIND_ADD: 1,
  EVENT_KIND_DEL: 2,
  EVENT_KIND_CHECK: 3,
  EVENT_KIND_GC: 4,
  EVENT_KIND_REPAIR: 5,
  EVENT_KIND_SUPPLY: 6,
  EVENT_KIND_PUBLISH: 7,
  EVENT_KIND_CONFLICT: 8,
  EVENT_KIND_FIGHT: 9,
  EVENT_KIND_STATUS: 10,
} as const;

/** Tells how it ended: the numbers of `enum EventOutcome`. */
export const EVENT_OUTCOME = {
  EVENT_OUTCOME_UNSPECIFIED: 0,
  EVENT_OUTCOME_OK: 1,
  EVENT_OUTCOME_FAILED: 2,
} as const;

/** Asks to be told what happens from now on. */
export const WATCH_REQUEST = {
  kinds: { number: 1, type: 'enum', repeated: true },
  clientVersion: { number: 2, type: 'string' },
} as const satisfies MessageTable;

/** Tells of one thing that happened. */
export const AGENT_EVENT = {
  atUnixMs: { number: 1, type: 'uint64' },
  kind: { number: 2, type: 'enum' },
  subject: { number: 3, type: 'string' },
  text: { number: 4, type: 'string' },
  outcome: { number: 5, type: 'enum' },
  durationUs: { number: 6, type: 'uint64' },
  dropped: { number: 7, type: 'uint64' },
  code: { number: 8, type: 'uint32' },
  containerId: { number: 9, type: 'string' },
  operations: { number: 10, type: 'string', repeated: true },
} as const satisfies MessageTable;

/** Asks for the last operations of Pods. */
export const RECORDER_REQUEST = {
  pod: { number: 1, type: 'string' },
  clientVersion: { number: 2, type: 'string' },
} as const satisfies MessageTable;

/** Describes how long one step of an operation took. */
export const RECORDED_STEP = {
  name: { number: 1, type: 'string' },
  durationUs: { number: 2, type: 'uint64' },
} as const satisfies MessageTable;

/** Describes one operation as the flight recorder kept it. */
export const RECORDED_OPERATION = {
  atUnixMs: { number: 1, type: 'uint64' },
  kind: { number: 2, type: 'enum' },
  containerId: { number: 3, type: 'string' },
  ifName: { number: 4, type: 'string' },
  outcome: { number: 5, type: 'enum' },
  code: { number: 6, type: 'uint32' },
  text: { number: 7, type: 'string' },
  details: { number: 8, type: 'string' },
  durationUs: { number: 9, type: 'uint64' },
  ips: { number: 10, type: 'string', repeated: true },
  eniId: { number: 11, type: 'string' },
  link: { number: 12, type: 'string' },
  steps: { number: 13, type: 'message', message: RECORDED_STEP, repeated: true },
  operations: { number: 14, type: 'string', repeated: true },
  repeats: { number: 15, type: 'uint32' },
  cause: { number: 16, type: 'string' },
} as const satisfies MessageTable;

/** Lists the last operations of one Pod, oldest first. */
export const RECORDED_POD = {
  pod: { number: 1, type: 'string' },
  operations: { number: 2, type: 'message', message: RECORDED_OPERATION, repeated: true },
} as const satisfies MessageTable;

/** Answers RECORDER_REQUEST. */
export const RECORDER_REPLY = {
  pods: { number: 1, type: 'message', message: RECORDED_POD, repeated: true },
  leftOut: { number: 2, type: 'uint32' },
  forgotten: { number: 3, type: 'uint64' },
} as const satisfies MessageTable;

/** Is POOL_REQUEST, decoded. */
export type PoolRequest = MessageOf<typeof POOL_REQUEST>;
/** Is POOL_ADDRESS, decoded. */
export type PoolAddress = MessageOf<typeof POOL_ADDRESS>;
/** Is POOL_ENI, decoded. */
export type PoolEni = MessageOf<typeof POOL_ENI>;
/** Is WAITING_ADD, decoded. */
export type WaitingAdd = MessageOf<typeof WAITING_ADD>;
/** Is POOL_REPLY, decoded. */
export type PoolReply = MessageOf<typeof POOL_REPLY>;
/** Is SUMMARY_REQUEST, decoded. */
export type SummaryRequest = MessageOf<typeof SUMMARY_REQUEST>;
/** Is OPS_STATUS, decoded. */
export type OpsStatus = MessageOf<typeof OPS_STATUS>;
/** Is LATENCY_BUCKET, decoded. */
export type LatencyBucket = MessageOf<typeof LATENCY_BUCKET>;
/** Is CALL_STATS, decoded. */
export type CallStats = MessageOf<typeof CALL_STATS>;
/** Is API_BUDGET, decoded. */
export type ApiBudget = MessageOf<typeof API_BUDGET>;
/** Is SUMMARY_REPLY, decoded. */
export type SummaryReply = MessageOf<typeof SUMMARY_REPLY>;
/** Is REPAIR_REQUEST, decoded. */
export type RepairRequest = MessageOf<typeof REPAIR_REQUEST>;
/** Is MIGRATION_STAGE, decoded. */
export type MigrationStage = MessageOf<typeof MIGRATION_STAGE>;
/** Is FAILED_OPERATION, decoded. */
export type FailedOperation = MessageOf<typeof FAILED_OPERATION>;
/** Is REPAIR_REPLY, decoded. */
export type RepairReply = MessageOf<typeof REPAIR_REPLY>;
/** Is WATCH_REQUEST, decoded. */
export type WatchRequest = MessageOf<typeof WATCH_REQUEST>;
/** Is AGENT_EVENT, decoded. */
export type AgentEvent = MessageOf<typeof AGENT_EVENT>;
/** Is RECORDER_REQUEST, decoded. */
export type RecorderRequest = MessageOf<typeof RECORDER_REQUEST>;
/** Is RECORDED_STEP, decoded. */
export type RecordedStep = MessageOf<typeof RECORDED_STEP>;
/** Is RECORDED_OPERATION, decoded. */
export type RecordedOperation = MessageOf<typeof RECORDED_OPERATION>;
/** Is RECORDED_POD, decoded. */
export type RecordedPod = MessageOf<typeof RECORDED_POD>;
/** Is RECORDER_REPLY, decoded. */
export type RecorderReply = MessageOf<typeof RECORDER_REPLY>;

/** Is POOL_REPLY to encode: missing fields have their defaults. */
export type PoolReplyInit = InitOf<typeof POOL_REPLY>;
/** Is SUMMARY_REPLY to encode: missing fields have their defaults. */
export type SummaryReplyInit = InitOf<typeof SUMMARY_REPLY>;
/** Is REPAIR_REPLY to encode: missing fields have their defaults. */
export type RepairReplyInit = InitOf<typeof REPAIR_REPLY>;
/** Is AGENT_EVENT to encode: missing fields have their defaults. */
export type AgentEventInit = InitOf<typeof AGENT_EVENT>;
/** Is RECORDED_OPERATION to encode: missing fields have their defaults. */
export type RecordedOperationInit = InitOf<typeof RECORDED_OPERATION>;
/** Is RECORDER_REPLY to encode: missing fields have their defaults. */
export type RecorderReplyInit = InitOf<typeof RECORDER_REPLY>;
