import { ApiError } from '../api-error.ts';
import type { Params } from '../params.ts';
import type { Backends } from './backends.ts';
import { placeId, type TargetPlace } from './target-place.ts';
import type { ModelTarget } from './types.ts';

/** The weight of a target that was registered without one. */
const DEFAULT_WEIGHT = 10;
const MOST_WEIGHT = 100;
const MOST_TAG = 80;

/** Fields of a target in a request about one listener. */
export const TARGET_FIELDS = ['Type', 'InstanceId', 'EniIp', 'Weight', 'Tag'] as const;

/** Reads a target that is to be registered. @throws ApiError */
export function readNewTarget(params: Params, backends: Backends, nowMs: number): ModelTarget {
  const isInstance = namesInstance(params);
  const backend = isInstance ? backends.ofInstance(params.text('InstanceId')) : backends.ofIp(params.text('EniIp'));
  return {
    ...backend,
    port: params.integer('Port', 0, 1, 65_535),
    weight: readWeight(params) ?? DEFAULT_WEIGHT,
    tag: params.text('Tag', MOST_TAG),
    registeredAtMs: nowMs,
  };
}

/** Finds the target that a request means; the instance or address behind it may be gone. @throws ApiError */
export function findTarget(params: Params, place: TargetPlace): ModelTarget {
  const isInstance = namesInstance(params);
  const wanted = params.text(isInstance ? 'InstanceId' : 'EniIp');
  const port = params.integer('Port', 0, 1, 65_535);
  const found = [...place.targets.values()].find(
    (target) =>
      target.port === port &&
      (isInstance ? target.type === 'CVM' && target.instanceId === wanted : target.ip === wanted),
  );
  if (found !== undefined) return found;
  throw new ApiError('InvalidParameterValue', `${wanted}:${port} is not bound to ${placeId(place)}.`);
}

/** The weight that a target or a rule names; undefined when it names none. @throws ApiError */
export function readWeight(params: Params): number | undefined {
  return params.has('Weight') ? params.integer('Weight', 0, 0, MOST_WEIGHT) : undefined;
}

/** What a target is called among those of its listener. */
export function targetKey({ ip, port }: { readonly ip: string; readonly port: number }): string {
  return `${ip}:${port}`;
}

function namesInstance(params: Params): boolean {
  if (params.has('InstanceId') !== params.has('EniIp')) return params.has('InstanceId');
  throw new ApiError('InvalidParameter', 'A target needs one of InstanceId and EniIp, and not both.');
}
