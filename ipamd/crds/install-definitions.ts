import { SCHEMA_NUMBER } from '../../crd/custom-resource-definition.ts';
import { RESOURCE_KINDS } from '../../crd/kinds.ts';
import { API_GROUP } from '../../crd/names.ts';
import type { ResourceKind } from '../../crd/resource-kind.ts';
import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, resourceTypeOf } from '../../kube/resource-types.ts';
import { backoffMs } from '../../runtime/backoff.ts';
import type { Clock } from '../../runtime/clock.ts';
import { isRecord } from '../../runtime/decode.ts';
import { messageOf } from '../../runtime/error-text.ts';
import { recordOf } from '../../runtime/json.ts';
import type { Logger } from '../../runtime/log.ts';
import { IpamdError } from '../config/ipamd-error.ts';
import { decideDefinition } from './decide-definition.ts';

/** Dependencies of the installation. */
type InstallDeps = {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly log: Logger;
  /** Default: all kinds of ipamd. */
  readonly kinds?: readonly ResourceKind[];
  /** Annotations of definitions that are created, beside their own. Default: none. */
  readonly annotations?: Readonly<Record<string, string>>;
};

/** Result for one definition. */
type InstallOutcome = {
  readonly name: string;
  readonly outcome: 'created' | 'updated' | 'unchanged' | 'newer' | 'forbidden';
};

const POLL_MS = 250;
/** The API server takes a second or two, longer while it is starting itself. */
const ESTABLISHED_WITHIN_MS = 60_000;
/** Replicas that start together conflict once or twice. */
const ATTEMPTS = 10;

/**
 * Creates the definitions of ipamd's kinds, or upgrades them to this release, and waits until the API server serves
 * them. Needs only create, update and get, as the ClusterRole grants them. Idempotent; several replicas may run it at
 * the same time. A missing right is reported, and is no failure as long as the definition exists.
 * @throws IpamdError DEFINITION when one does not exist and may not be created, or is another program's: then none is written
 * @throws KubeError when the API server does not answer: try again.
 */
export async function installDefinitions(deps: InstallDeps, signal: AbortSignal): Promise<readonly InstallOutcome[]> {
  await refuseClashes(deps, signal);
  const outcomes: InstallOutcome[] = [];
  for (const kind of deps.kinds ?? RESOURCE_KINDS) outcomes.push(await installOne(deps, kind, signal));
  // After all of them were written: the API server works on them in parallel.
  for (const { name, outcome } of outcomes) {
    if (outcome !== 'forbidden') await waitEstablished(deps, name, signal);
  }
  return outcomes;
}

/** Reads all definitions before the first is written: one of another program means that it is here. @throws IpamdError */
async function refuseClashes({ client, kinds = RESOURCE_KINDS }: InstallDeps, signal: AbortSignal): Promise<void> {
  const reasons = await Promise.all(kinds.map((kind) => findClash(client, kind, signal)));
  const found = reasons.filter((why) => why !== undefined);
  if (found.length > 0) throw new IpamdError('DEFINITION', found.join('; '));
}

/**
 * Reads a definition, and returns why it cannot be ipamd's; undefined: it can, or it may not be read. @throws KubeError when
 * the API server does not answer
 */
async function findClash(client: KubeClient, kind: ResourceKind, signal: AbortSignal): Promise<string | undefined> {
  try {
    const installed = await client.get(CUSTOM_RESOURCE_DEFINITIONS, { name: `${kind.plural}.${API_GROUP}` }, signal);
    const step = decideDefinition(kind, installed);
    return step.kind === 'clash' ? step.why : undefined;
  } catch (error) {
    if (isKubeError(error, 'FORBIDDEN')) return undefined;
    throw error;
  }
}

async function installOne(deps: InstallDeps, kind: ResourceKind, signal: AbortSignal): Promise<InstallOutcome> {
  const name = `${kind.plural}.${API_GROUP}`;
  for (let attempt = 1; ; attempt++) {
    try {
      return { name, outcome: await tryInstall(deps, kind, name, signal) };
    } catch (error) {
      const isRace = isKubeError(error, 'CONFLICT', 'ALREADY_EXISTS', 'NOT_FOUND');
      if (!isRace || attempt === ATTEMPTS) throw error;
      await deps.clock.sleep(POLL_MS, signal);
    }
  }
}

async function tryInstall(
  deps: InstallDeps,
  kind: ResourceKind,
  name: string,
  signal: AbortSignal,
): Promise<InstallOutcome['outcome']> {
  const { client, log } = deps;
  let right = 'get';
  let exists = true;
  try {
    const installed = await client.get(CUSTOM_RESOURCE_DEFINITIONS, { name }, signal);
    const step = decideDefinition(kind, installed);
    switch (step.kind) {
      case 'keep':
        return 'unchanged';
      case 'keep-newer':
        log.warn('definition of a newer release left as it is', { name, schema: step.number });
        return 'newer';
      case 'clash':
        throw new IpamdError('DEFINITION', step.why);
      case 'create':
        right = 'create';
        exists = false;
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, withAnnotations(step.object, deps.annotations), signal);
        log.info('definition created', { name });
        return 'created';
      case 'update':
        right = 'update';
        await client.update(CUSTOM_RESOURCE_DEFINITIONS, step.object, signal);
        if (step.from < SCHEMA_NUMBER) log.info('definition upgraded', { name, from: step.from, to: SCHEMA_NUMBER });
        else log.info('definition changed back', { name });
        return 'updated';
    }
  } catch (error) {
    if (!isKubeError(error, 'FORBIDDEN')) throw error;
    const missing = `ipamd's role lacks the right to ${right} customresourcedefinitions of apiextensions.k8s.io, for ${name}`;
    if (!exists || (right === 'get' && !(await isServed(client, kind, signal)))) {
      const cure = 'grant it, or apply the manifests of conf/crd/';
      throw new IpamdError('DEFINITION', `${missing}: ${cure}`, { cause: error });
    }
    log.error('definition left as it is: a right is missing', { name, right, cure: missing, error });
    return 'forbidden';
  }
}

function withAnnotations(object: KubeObject, more: Readonly<Record<string, string>> = {}): KubeObject {
  const { metadata } = object;
  return { ...object, metadata: { ...metadata, annotations: { ...metadata.annotations, ...more } } };
}

/** Reports whether the API server serves a kind, without reading its definition. */
async function isServed(client: KubeClient, kind: ResourceKind, signal: AbortSignal): Promise<boolean> {
  try {
    await client.listPage(resourceTypeOf(kind), { limit: 1 }, signal);
    return true;
  } catch (error) {
    if (isKubeError(error, 'NOT_FOUND')) return false;
    // The refused resource exists: the informer of its objects will report the missing right.
    if (isKubeError(error, 'FORBIDDEN')) return true;
    throw error;
  }
}

async function waitEstablished({ client, clock }: InstallDeps, name: string, signal: AbortSignal): Promise<void> {
  const endMs = clock.monotonicMs() + ESTABLISHED_WITHIN_MS;
  for (;;) {
    const installed = await client.get(CUSTOM_RESOURCE_DEFINITIONS, { name }, signal);
    const accepted = conditionOf(installed, 'NamesAccepted');
    if (conditionOf(installed, 'Established')?.['status'] === 'True') return;
    if (accepted?.['status'] === 'False') {
      const why = String(accepted['message'] ?? accepted['reason']);
      throw new IpamdError('DEFINITION', `${name}: its names are taken: ${why}; remove the other definition`);
    }
    if (clock.monotonicMs() >= endMs) {
      throw new IpamdError(
        'DEFINITION',
        `${name}: not served ${ESTABLISHED_WITHIN_MS} ms after it was made; look at the API server`,
      );
    }
    await clock.sleep(POLL_MS, signal);
  }
}

function conditionOf(installed: KubeObject | undefined, type: string): Readonly<Record<string, unknown>> | undefined {
  const status = installed?.['status'];
  const conditions: unknown = recordOf(status)['conditions'];
  if (!Array.isArray(conditions)) return undefined;
  return conditions.filter(isRecord).find((condition) => condition['type'] === type);
}

const CURE = 'look at --kubeconfig or --master, and whether it runs';
const BACKOFF = { firstMs: 500, maxMs: 30_000, factor: 2, jitter: 0 };

/** Logs that the API server gave no answer at the start, and returns the reason for readiness; undefined when it gave one. */
export function noteSilence(log: Logger, error: unknown): string | undefined {
  if (!isKubeError(error, 'UNAVAILABLE', 'TIMEOUT')) return undefined;
  log.error(`the API server does not answer, ${CURE}; will try again`, { error });
  return `the API server does not answer: ${messageOf(error)}`;
}

/**
 * Installs the definitions, repeated until they exist or the signal aborts. Never rejects.
 * @param report is called with the reason why they do not exist yet, and with `undefined` once they do.
 */
export async function ensureDefinitions(
  deps: InstallDeps,
  signal: AbortSignal,
  report: (problem: string | undefined) => void,
): Promise<void> {
  for (let attempt = 1; !signal.aborted; attempt++) {
    try {
      await installDefinitions(deps, signal);
      report(undefined);
      return;
    } catch (error) {
      if (signal.aborted) return;
      const silence = noteSilence(deps.log, error);
      if (silence === undefined) {
        deps.log.error('definitions of resources are not in place, will try again', { error });
      }
      report(silence ?? `definitions of resources: ${messageOf(error)}`);
      await deps.clock.sleep(backoffMs(BACKOFF, attempt, 0), signal).catch(() => {});
    }
  }
}
