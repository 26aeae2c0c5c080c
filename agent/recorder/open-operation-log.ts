import { renderOperation } from '../../dataplane/operation.ts';
import type { Clock } from '../../runtime/clock.ts';
import { CNI_CODE } from '../api/cni-code.ts';
import type { Lease, LeaseKey } from '../journal/lease.ts';
import type { EventHub } from './event-hub.ts';
import { KIND_NUMBER, microseconds, outcomeNumber, podSubject } from './event-message.ts';
import type { FlightRecorder, RecordedEntry, RecordedStepEntry } from './flight-recorder.ts';
import type { OperationLog, OperationOutcome, OperationStart, RepairOccurrence } from './operation-log.ts';
import { groupByLease } from './operation-scope.ts';

/** Dependencies of the operation log. */
type OperationLogDeps = {
  readonly clock: Pick<Clock, 'nowMs' | 'monotonicMs'>;
  readonly recorder: FlightRecorder;
  readonly hub: EventHub;
};

type RunningOperation = {
  readonly start: OperationStart;
  readonly containerId: string;
  readonly ifName: string;
  readonly startedMs: number;
  readonly steps: RecordedStepEntry[];
  readonly kernel: (() => readonly string[])[];
  stepFromMs: number;
  decided: Lease | undefined;
};

/** Opens an operation log that writes to the flight recorder and to watchers. */
export function openOperationLog(deps: OperationLogDeps): OperationLog {
  const { clock, hub } = deps;
  // At most one operation for each key, because whoever begins one holds the key's lock.
  const running = new Map<LeaseKey, RunningOperation>();
  return {
    begin: (key, start) => {
      running.set(key, newOperation(key, start, clock.monotonicMs()));
    },
    decided: (key, lease) => {
      const operation = running.get(key);
      if (operation !== undefined) operation.decided = lease;
    },
    step: (key, name) => {
      const operation = running.get(key);
      if (operation === undefined) return;
      const nowMs = clock.monotonicMs();
      operation.steps.push({ name, ms: nowMs - operation.stepFromMs });
      operation.stepFromMs = nowMs;
    },
    kernelChanged: (key, render) => {
      running.get(key)?.kernel.push(render);
    },
    end: (key, outcome) => {
      const operation = running.get(key);
      if (operation === undefined) return;
      running.delete(key);
      end(deps, operation, outcome);
    },
    repaired: (pass) => repaired(deps, pass),
    report: (kind, render) => {
      hub.publish(KIND_NUMBER[kind], () => {
        const { subject = '', text, isFailure = false, code = 0 } = render();
        return {
          ...{ atUnixMs: Math.round(clock.nowMs()), kind: KIND_NUMBER[kind], subject, text, code },
          outcome: outcomeNumber(isFailure),
        };
      });
    },
  };
}

function newOperation(key: LeaseKey, start: OperationStart, nowMs: number): RunningOperation {
  const slash = key.indexOf('/');
  const startedMs = start.startedMs ?? nowMs;
  return {
    ...{ start, startedMs, stepFromMs: startedMs },
    ...{ containerId: key.slice(0, slash), ifName: key.slice(slash + 1) },
    ...{ steps: [], kernel: [], decided: undefined },
  };
}

function end({ clock, recorder, hub }: OperationLogDeps, operation: RunningOperation, outcome: OperationOutcome): void {
  const { start, containerId, ifName, steps, kernel } = operation;
  const durationMs = clock.monotonicMs() - operation.startedMs;
  const { failure, differences } = outcome;
  const lease = outcome.lease ?? operation.decided;
  const entry: RecordedEntry = {
    ...{ kind: start.kind, containerId, ifName, durationMs, steps, kernel, lease, failure },
    atMs: clock.nowMs() - durationMs,
    ...(differences === undefined ? {} : { differences }),
  };
  const pod = podSubject({ ...start, containerId });
  // Runtimes repeat DELs of unknown attachments as long as they like: nothing was done, so nothing is recorded.
  if (lease !== undefined || failure !== undefined) recorder.add(pod, entry);
  const number = KIND_NUMBER[start.kind];
  hub.publish(number, () => ({
    ...{ atUnixMs: Math.round(clock.nowMs()), kind: number, subject: pod, containerId },
    outcome: outcomeNumber(failure !== undefined || (differences?.length ?? 0) > 0),
    text: textOf(entry),
    durationUs: microseconds(durationMs),
    code: failure?.code ?? 0,
    operations: kernel.flatMap((render) => render()),
  }));
}

/** Describes the outcome of an operation in one line. */
export function textOf({ kind, lease, failure, differences = [] }: RecordedEntry): string {
  if (failure !== undefined) return failure.msg;
  if (kind === 'repair' && lease === undefined) return '';
  if (lease === undefined) return 'nothing of it is here';
  if (differences.length > 0) return `${differences.length} differences: ${differences[0]}`;
  return `${lease.addresses.map(({ ip }) => ip).join(', ')} on ${lease.eniId}`;
}

function repaired({ clock, recorder, hub }: OperationLogDeps, pass: RepairOccurrence): void {
  const { cause, durationMs, done, failed } = pass;
  if (done.length === 0 && failed.length === 0) return;
  const all = [...done, ...failed.map(({ operation }) => operation)];
  for (const [lease, operations] of groupByLease(all, pass.leases)) {
    const errors = failed.filter(({ operation }) => operations.includes(operation));
    const { containerId = '', ifName = '' } = lease ?? {};
    const entry: RecordedEntry = {
      ...{ kind: 'repair', containerId, ifName, durationMs, cause, lease },
      atMs: clock.nowMs() - durationMs,
      steps: [],
      kernel: [() => operations.map(renderOperation)],
      ...(errors.length === 0
        ? {}
        : { failure: { code: CNI_CODE.kernel, msg: String(errors[0]?.error), details: '' } }),
    };
    if (lease === undefined) recorder.addOfNode(entry);
    else recorder.add(podSubject(lease), entry);
  }
  const number = KIND_NUMBER.repair;
  hub.publish(number, () => ({
    ...{ atUnixMs: Math.round(clock.nowMs()), kind: number },
    outcome: outcomeNumber(failed.length > 0),
    text: [
      `${done.length} done`,
      ...(failed.length === 0 ? [] : [`${failed.length} refused: ${String(failed[0]?.error)}`]),
      `cause: ${cause}`,
    ].join(', '),
    durationUs: microseconds(durationMs),
    operations: done.map(renderOperation),
  }));
}
