import { RESOURCE_KINDS } from '../../crd/kinds.ts';
import { API_GROUP } from '../../crd/names.ts';
import type { ResourceKind } from '../../crd/resource-kind.ts';
import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, resourceTypeOf } from '../../kube/resource-types.ts';
import type { Clock } from '../../runtime/clock.ts';
import { isRecord } from '../../runtime/decode.ts';
import type { Logger } from '../../runtime/log.ts';
import { IpamdError } from '../ipamd-error.ts';
import { decideDefinition } from './decide-definition.ts';

/** What definitions are installed with. */
export type InstallDeps = {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly log: Logger;
  /** Default: all of ours. */
  readonly kinds?: readonly ResourceKind[];
};

/** What came of one definition. */
export type InstallOutcome = {
  readonly name: string;
  readonly outcome: 'created' | 'updated' | 'unchanged' | 'newer' | 'forbidden';
};

const POLL_MS = 250;
/** The API server takes a second or two, longer when it is starting itself. */
const ESTABLISHED_WITHIN_MS = 60_000;
/** Replicas that start together get in each other's way once or twice. */
const ATTEMPTS = 10;

/**
 * Creates the definitions of our kinds, or upgrades them to this release's, and waits until the API server serves them.
 * Needs create, update and get only, as the ClusterRole grants them. Idempotent, and several replicas may do it at once.
 * A right that is missing is reported and no failure as long as the definition is there.
 * @throws IpamdError DEFINITION when one is not there and may not be made, or clashes with another.
 * @throws KubeError when the API server does not answer: try again.
 */
export async function installDefinitions(deps: InstallDeps, signal: AbortSignal): Promise<readonly InstallOutcome[]> {
  const outcomes: InstallOutcome[] = [];
  for (const kind of deps.kinds ?? RESOURCE_KINDS) outcomes.push(await installOne(deps, kind, signal));
  // Only then: the API server works on all of them at the same time.
  for (const { name, outcome } of outcomes) {
    if (outcome !== 'forbidden') await waitEstablished(deps, name, signal);
  }
  return outcomes;
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
  let isThere = true;
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
        isThere = false;
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, step.object, signal);
        log.info('definition created', { name });
        return 'created';
      case 'update':
        right = 'update';
        await client.update(CUSTOM_RESOURCE_DEFINITIONS, step.object, signal);
        log.info('definition upgraded', { name });
        return 'updated';
    }
  } catch (error) {
    if (!isKubeError(error, 'FORBIDDEN')) throw error;
    const missing = `ipamd's role lacks the right to ${right} customresourcedefinitions of apiextensions.k8s.io, for ${name}`;
    if (!isThere || (right === 'get' && !(await isServed(client, kind, signal)))) {
      const cure = 'grant it, or apply the manifests of conf/crd/';
      throw new IpamdError('DEFINITION', `${missing}: ${cure}`, { cause: error });
    }
    log.error('definition left as it is: a right is missing', { name, right, cure: missing, error });
    return 'forbidden';
  }
}

/** Tells without looking at the definition. */
async function isServed(client: KubeClient, kind: ResourceKind, signal: AbortSignal): Promise<boolean> {
  try {
    await client.listPage(resourceTypeOf(kind), { limit: 1 }, signal);
    return true;
  } catch (error) {
    if (isKubeError(error, 'NOT_FOUND')) return false;
    // Refused for a resource that is: whoever follows its objects will say so.
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
  const conditions: unknown = isRecord(status) ? status['conditions'] : undefined;
  if (!Array.isArray(conditions)) return undefined;
  return conditions.filter(isRecord).find((condition) => condition['type'] === type);
}
