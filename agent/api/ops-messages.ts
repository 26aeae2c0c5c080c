// Made from ops.proto by tools/gen-messages.ts; run: make gen
import type { InitOf, MessageOf, MessageTable } from './codec.ts';

/** Requests the addresses of the node. */
export const POOL_REQUEST = {
  clientVersion: { number: 1, type: 'string' },
  runtimeHandlers: { number: 2, type: 'bool' },
} as const satisfies MessageTable;
/** POOL_REQUEST, decoded. */
export type PoolRequest = MessageOf<typeof POOL_REQUEST>;
/** POOL_REQUEST to encode: missing fields get their defaults. */
export type PoolRequestInit = InitOf<typeof POOL_REQUEST>;

/**
 * The states of an address.
 * The numbers of `enum AddressState`.
 */
export const ADDRESS_STATE = {
  ADDRESS_STATE_UNSPECIFIED: 0,
  ADDRESS_STATE_FREE: 1,
  ADDRESS_STATE_IN_USE: 2,
  ADDRESS_STATE_COOLING: 3,
  ADDRESS_STATE_OFFERED: 4,
  ADDRESS_STATE_RELEASING: 5,
  ADDRESS_STATE_UNREADY: 6,
  ADDRESS_STATE_KEPT: 7,
  ADDRESS_STATE_REGISTERED: 8,
} as const;
/** One of ADDRESS_STATE. A decoded message may hold a number of a later release; therefore its field is a plain number. */
export type AddressState = (typeof ADDRESS_STATE)[keyof typeof ADDRESS_STATE];

/** One address of the node, and the Pod that has it. */
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
  runtimeHandler: { number: 15, type: 'string' },
} as const satisfies MessageTable;
/** POOL_ADDRESS, decoded. */
export type PoolAddress = MessageOf<typeof POOL_ADDRESS>;
/** POOL_ADDRESS to encode: missing fields get their defaults. */
export type PoolAddressInit = InitOf<typeof POOL_ADDRESS>;

/** A reason why an ENI is not given back. */
export const ENI_STAY = {
  reason: { number: 1, type: 'string' },
  text: { number: 2, type: 'string' },
} as const satisfies MessageTable;
/** ENI_STAY, decoded. */
export type EniStay = MessageOf<typeof ENI_STAY>;
/** ENI_STAY to encode: missing fields get their defaults. */
export type EniStayInit = InitOf<typeof ENI_STAY>;

/** One ENI of the node. */
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
  stays: { number: 17, type: 'message', message: ENI_STAY, repeated: true },
} as const satisfies MessageTable;
/** POOL_ENI, decoded. */
export type PoolEni = MessageOf<typeof POOL_ENI>;
/** POOL_ENI to encode: missing fields get their defaults. */
export type PoolEniInit = InitOf<typeof POOL_ENI>;

/** An ADD that found no address and waits for one. */
export const WAITING_ADD = {
  containerId: { number: 1, type: 'string' },
  ifName: { number: 2, type: 'string' },
  podNamespace: { number: 3, type: 'string' },
  podName: { number: 4, type: 'string' },
} as const satisfies MessageTable;
/** WAITING_ADD, decoded. */
export type WaitingAdd = MessageOf<typeof WAITING_ADD>;
/** WAITING_ADD to encode: missing fields get their defaults. */
export type WaitingAddInit = InitOf<typeof WAITING_ADD>;

/** The demand that the node's object at the API server has. */
export const ASKED_ADDRESSES = {
  known: { number: 1, type: 'bool' },
  addresses: { number: 2, type: 'uint32' },
} as const satisfies MessageTable;
/** ASKED_ADDRESSES, decoded. */
export type AskedAddresses = MessageOf<typeof ASKED_ADDRESSES>;
/** ASKED_ADDRESSES to encode: missing fields get their defaults. */
export type AskedAddressesInit = InitOf<typeof ASKED_ADDRESSES>;

/** Reply to PoolRequest. */
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
  asked: { number: 14, type: 'message', message: ASKED_ADDRESSES },
} as const satisfies MessageTable;
/** POOL_REPLY, decoded. */
export type PoolReply = MessageOf<typeof POOL_REPLY>;
/** POOL_REPLY to encode: missing fields get their defaults. */
export type PoolReplyInit = InitOf<typeof POOL_REPLY>;

/** Requests the state of the agent and what it has done. */
export const SUMMARY_REQUEST = {
  clientVersion: { number: 1, type: 'string' },
} as const satisfies MessageTable;
/** SUMMARY_REQUEST, decoded. */
export type SummaryRequest = MessageOf<typeof SUMMARY_REQUEST>;
/** SUMMARY_REQUEST to encode: missing fields get their defaults. */
export type SummaryRequestInit = InitOf<typeof SUMMARY_REQUEST>;

/** In CNI's terms; code 0 is success. */
export const OPS_STATUS = {
  code: { number: 1, type: 'uint32' },
  msg: { number: 2, type: 'string' },
  details: { number: 3, type: 'string' },
} as const satisfies MessageTable;
/** OPS_STATUS, decoded. */
export type OpsStatus = MessageOf<typeof OPS_STATUS>;
/** OPS_STATUS to encode: missing fields get their defaults. */
export type OpsStatusInit = InitOf<typeof OPS_STATUS>;

/** Calls that took longer than the bucket before, and at most up_to_us. 0: without a bound. */
export const LATENCY_BUCKET = {
  upToUs: { number: 1, type: 'uint64' },
  count: { number: 2, type: 'uint64' },
} as const satisfies MessageTable;
/** LATENCY_BUCKET, decoded. */
export type LatencyBucket = MessageOf<typeof LATENCY_BUCKET>;
/** LATENCY_BUCKET to encode: missing fields get their defaults. */
export type LatencyBucketInit = InitOf<typeof LATENCY_BUCKET>;

/** Counters of the calls of one verb. */
export const CALL_STATS = {
  verb: { number: 1, type: 'string' },
  total: { number: 2, type: 'uint64' },
  failed: { number: 3, type: 'uint64' },
  sumUs: { number: 4, type: 'uint64' },
  buckets: { number: 5, type: 'message', message: LATENCY_BUCKET, repeated: true },
} as const satisfies MessageTable;
/** CALL_STATS, decoded. */
export type CallStats = MessageOf<typeof CALL_STATS>;
/** CALL_STATS to encode: missing fields get their defaults. */
export type CallStatsInit = InitOf<typeof CALL_STATS>;

/** The agent's rate limit at the API server, and what was used of it. */
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
/** API_BUDGET, decoded. */
export type ApiBudget = MessageOf<typeof API_BUDGET>;
/** API_BUDGET to encode: missing fields get their defaults. */
export type ApiBudgetInit = InitOf<typeof API_BUDGET>;

/** GlobalRoute Pods of the node. */
export const BRIDGE_PODS = {
  defaultNetwork: { number: 1, type: 'string' },
  podCidrs: { number: 2, type: 'string', repeated: true },
  formerCidrs: { number: 3, type: 'string', repeated: true },
  addresses: { number: 4, type: 'uint32' },
  inUse: { number: 5, type: 'uint32' },
  problem: { number: 6, type: 'string' },
  masquerade: { number: 7, type: 'bool' },
  masqueradeWhy: { number: 8, type: 'string' },
  wiring: { number: 9, type: 'string' },
} as const satisfies MessageTable;
/** BRIDGE_PODS, decoded. */
export type BridgePods = MessageOf<typeof BRIDGE_PODS>;
/** BRIDGE_PODS to encode: missing fields get their defaults. */
export type BridgePodsInit = InitOf<typeof BRIDGE_PODS>;

/** How packets of known flows are forwarded. */
export const FAST_PATH = {
  wanted: { number: 1, type: 'string' },
  mode: { number: 2, type: 'string' },
  why: { number: 3, type: 'string' },
  ageMs: { number: 4, type: 'uint64' },
  flows: { number: 5, type: 'uint32' },
  epoch: { number: 6, type: 'uint32' },
} as const satisfies MessageTable;
/** FAST_PATH, decoded. */
export type FastPath = MessageOf<typeof FAST_PATH>;
/** FAST_PATH to encode: missing fields get their defaults. */
export type FastPathInit = InitOf<typeof FAST_PATH>;

/** A kind of call of the agent to the API server without a good answer. */
export const API_FAILURE = {
  call: { number: 1, type: 'string' },
  kind: { number: 2, type: 'string' },
  code: { number: 3, type: 'string' },
  httpStatus: { number: 4, type: 'uint32' },
  text: { number: 5, type: 'string' },
  ageMs: { number: 6, type: 'uint64' },
  lastAgeMs: { number: 7, type: 'uint64' },
  count: { number: 8, type: 'uint32' },
  next: { number: 9, type: 'string' },
  summary: { number: 10, type: 'string' },
  isNeededByPods: { number: 11, type: 'bool' },
} as const satisfies MessageTable;
/** API_FAILURE, decoded. */
export type ApiFailure = MessageOf<typeof API_FAILURE>;
/** API_FAILURE to encode: missing fields get their defaults. */
export type ApiFailureInit = InitOf<typeof API_FAILURE>;

/** Reply to SummaryRequest. */
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
  bridge: { number: 26, type: 'message', message: BRIDGE_PODS },
  role: { number: 27, type: 'string' },
  fastPath: { number: 28, type: 'message', message: FAST_PATH },
  apiFailures: { number: 29, type: 'message', message: API_FAILURE, repeated: true },
} as const satisfies MessageTable;
/** SUMMARY_REPLY, decoded. */
export type SummaryReply = MessageOf<typeof SUMMARY_REPLY>;
/** SUMMARY_REPLY to encode: missing fields get their defaults. */
export type SummaryReplyInit = InitOf<typeof SUMMARY_REPLY>;

/** Requests a repair pass, or with dry_run a list of what one would do. */
export const REPAIR_REQUEST = {
  dryRun: { number: 1, type: 'bool' },
  clientVersion: { number: 2, type: 'string' },
  ruleMode: { number: 3, type: 'string' },
} as const satisfies MessageTable;
/** REPAIR_REQUEST, decoded. */
export type RepairRequest = MessageOf<typeof REPAIR_REQUEST>;
/** REPAIR_REQUEST to encode: missing fields get their defaults. */
export type RepairRequestInit = InitOf<typeof REPAIR_REQUEST>;

/** One stage of a change of rule mode. Packets flow between any two stages. */
export const MIGRATION_STAGE = {
  what: { number: 1, type: 'string' },
  operations: { number: 2, type: 'string', repeated: true },
} as const satisfies MessageTable;
/** MIGRATION_STAGE, decoded. */
export type MigrationStage = MessageOf<typeof MIGRATION_STAGE>;
/** MIGRATION_STAGE to encode: missing fields get their defaults. */
export type MigrationStageInit = InitOf<typeof MIGRATION_STAGE>;

/** An operation that the kernel refused. */
export const FAILED_OPERATION = {
  operation: { number: 1, type: 'string' },
  error: { number: 2, type: 'string' },
} as const satisfies MessageTable;
/** FAILED_OPERATION, decoded. */
export type FailedOperation = MessageOf<typeof FAILED_OPERATION>;
/** FAILED_OPERATION to encode: missing fields get their defaults. */
export type FailedOperationInit = InitOf<typeof FAILED_OPERATION>;

/** Reply to RepairRequest. */
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
/** REPAIR_REPLY, decoded. */
export type RepairReply = MessageOf<typeof REPAIR_REPLY>;
/** REPAIR_REPLY to encode: missing fields get their defaults. */
export type RepairReplyInit = InitOf<typeof REPAIR_REPLY>;

/**
 * Kinds of events.
 * The numbers of `enum EventKind`.
 */
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
/** One of EVENT_KIND. A decoded message may hold a number of a later release; therefore its field is a plain number. */
export type EventKind = (typeof EVENT_KIND)[keyof typeof EVENT_KIND];

/**
 * Outcomes of events.
 * The numbers of `enum EventOutcome`.
 */
export const EVENT_OUTCOME = {
  EVENT_OUTCOME_UNSPECIFIED: 0,
  EVENT_OUTCOME_OK: 1,
  EVENT_OUTCOME_FAILED: 2,
} as const;
/** One of EVENT_OUTCOME. A decoded message may hold a number of a later release; therefore its field is a plain number. */
export type EventOutcome = (typeof EVENT_OUTCOME)[keyof typeof EVENT_OUTCOME];

/** Requests a stream of the events from now on. */
export const WATCH_REQUEST = {
  kinds: { number: 1, type: 'enum', repeated: true },
  clientVersion: { number: 2, type: 'string' },
} as const satisfies MessageTable;
/** WATCH_REQUEST, decoded. */
export type WatchRequest = MessageOf<typeof WATCH_REQUEST>;
/** WATCH_REQUEST to encode: missing fields get their defaults. */
export type WatchRequestInit = InitOf<typeof WATCH_REQUEST>;

/** One event. */
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
/** AGENT_EVENT, decoded. */
export type AgentEvent = MessageOf<typeof AGENT_EVENT>;
/** AGENT_EVENT to encode: missing fields get their defaults. */
export type AgentEventInit = InitOf<typeof AGENT_EVENT>;

/** Requests the last operations of Pods. */
export const RECORDER_REQUEST = {
  pod: { number: 1, type: 'string' },
  clientVersion: { number: 2, type: 'string' },
} as const satisfies MessageTable;
/** RECORDER_REQUEST, decoded. */
export type RecorderRequest = MessageOf<typeof RECORDER_REQUEST>;
/** RECORDER_REQUEST to encode: missing fields get their defaults. */
export type RecorderRequestInit = InitOf<typeof RECORDER_REQUEST>;

/** How long one step of an operation took. */
export const RECORDED_STEP = {
  name: { number: 1, type: 'string' },
  durationUs: { number: 2, type: 'uint64' },
} as const satisfies MessageTable;
/** RECORDED_STEP, decoded. */
export type RecordedStep = MessageOf<typeof RECORDED_STEP>;
/** RECORDED_STEP to encode: missing fields get their defaults. */
export type RecordedStepInit = InitOf<typeof RECORDED_STEP>;

/** One operation as the flight recorder holds it. */
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
/** RECORDED_OPERATION, decoded. */
export type RecordedOperation = MessageOf<typeof RECORDED_OPERATION>;
/** RECORDED_OPERATION to encode: missing fields get their defaults. */
export type RecordedOperationInit = InitOf<typeof RECORDED_OPERATION>;

/** The last operations of one Pod. */
export const RECORDED_POD = {
  pod: { number: 1, type: 'string' },
  operations: { number: 2, type: 'message', message: RECORDED_OPERATION, repeated: true },
} as const satisfies MessageTable;
/** RECORDED_POD, decoded. */
export type RecordedPod = MessageOf<typeof RECORDED_POD>;
/** RECORDED_POD to encode: missing fields get their defaults. */
export type RecordedPodInit = InitOf<typeof RECORDED_POD>;

/** Reply to RecorderRequest. */
export const RECORDER_REPLY = {
  pods: { number: 1, type: 'message', message: RECORDED_POD, repeated: true },
  leftOut: { number: 2, type: 'uint32' },
  forgotten: { number: 3, type: 'uint64' },
} as const satisfies MessageTable;
/** RECORDER_REPLY, decoded. */
export type RecorderReply = MessageOf<typeof RECORDER_REPLY>;
/** RECORDER_REPLY to encode: missing fields get their defaults. */
export type RecorderReplyInit = InitOf<typeof RECORDER_REPLY>;

/** What the caller would read itself, so that an agent of another node, or of another view of it, does not answer. */
export const EXPLAIN_PLACE = {
  netns: { number: 1, type: 'string' },
  journal: { number: 2, type: 'string' },
  hostRoot: { number: 3, type: 'string' },
} as const satisfies MessageTable;
/** EXPLAIN_PLACE, decoded. */
export type ExplainPlace = MessageOf<typeof EXPLAIN_PLACE>;
/** EXPLAIN_PLACE to encode: missing fields get their defaults. */
export type ExplainPlaceInit = InitOf<typeof EXPLAIN_PLACE>;

/** Requests how packets of a Pod go. */
export const EXPLAIN_REQUEST = {
  subject: { number: 1, type: 'string' },
  to: { number: 2, type: 'string' },
  from: { number: 3, type: 'string' },
  place: { number: 4, type: 'message', message: EXPLAIN_PLACE },
  clientVersion: { number: 5, type: 'string' },
} as const satisfies MessageTable;
/** EXPLAIN_REQUEST, decoded. */
export type ExplainRequest = MessageOf<typeof EXPLAIN_REQUEST>;
/** EXPLAIN_REQUEST to encode: missing fields get their defaults. */
export type ExplainRequestInit = InitOf<typeof EXPLAIN_REQUEST>;

/** Reply to ExplainRequest. */
export const EXPLAIN_REPLY = {
  explanation: { number: 1, type: 'string' },
  declined: { number: 2, type: 'string' },
  agentVersion: { number: 3, type: 'string' },
} as const satisfies MessageTable;
/** EXPLAIN_REPLY, decoded. */
export type ExplainReply = MessageOf<typeof EXPLAIN_REPLY>;
/** EXPLAIN_REPLY to encode: missing fields get their defaults. */
export type ExplainReplyInit = InitOf<typeof EXPLAIN_REPLY>;
