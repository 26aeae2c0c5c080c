import type { ApiResource } from './resources/api-resource.ts';
import type { Cause } from './resources/causes.ts';

/** What a failed request is about. */
type ErrorDetails = {
  readonly name?: string;
  readonly group?: string;
  readonly kind?: string;
  readonly uid?: string;
  readonly causes?: readonly Cause[];
  readonly retryAfterSeconds?: number;
};

/** A request that fails as the real API server fails it; `reason` is the identity, as in `metav1.StatusReason`. */
export class ApiError extends Error {
  readonly code: number;
  readonly reason: string;
  readonly details: ErrorDetails | undefined;

  constructor(code: number, reason: string, message: string, details?: ErrorDetails) {
    super(message);
    this.name = 'ApiError';
    this.code = code;
    this.reason = reason;
    this.details = details;
  }

  /** Returns the body of the answer. */
  toStatus() {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: this.message,
      ...(this.reason === '' ? {} : { reason: this.reason }),
      ...(this.details === undefined ? {} : { details: this.details }),
      code: this.code,
    };
  }
}

type Named = Pick<ApiResource, 'group' | 'plural' | 'kind'>;

/** Names a resource as errors do: `pods`, `deployments.apps`. */
function qualified({ group, plural }: Pick<ApiResource, 'group' | 'plural'>): string {
  return group === '' ? plural : `${plural}.${group}`;
}

function detailsOf(resource: Named, name: string): ErrorDetails {
  return { name, ...(resource.group === '' ? {} : { group: resource.group }), kind: resource.plural };
}

/** Makes the error for a path that names no resource of a group that is there. */
export function noSuchResource(): ApiError {
  return new ApiError(404, 'NotFound', 'the server could not find the requested resource', {});
}

/** Makes the error for options of a request that do not go together. */
export function invalidOptions(kind: string, cause: Cause): ApiError {
  const message = `${kind}.meta.k8s.io "" is invalid: ${cause.field}: ${cause.message}`;
  return new ApiError(422, 'Invalid', message, { group: 'meta.k8s.io', kind, causes: [cause] });
}

/** Makes the error for an object that is not there. */
export function notFound(resource: Named, name: string): ApiError {
  return new ApiError(404, 'NotFound', `${qualified(resource)} "${name}" not found`, detailsOf(resource, name));
}

/** Makes the error for a create of what is there. */
export function alreadyExists(resource: Named, name: string): ApiError {
  const message = `${qualified(resource)} "${name}" already exists`;
  return new ApiError(409, 'AlreadyExists', message, detailsOf(resource, name));
}

/** Makes the error for a write that was decided on an older state. */
export function conflict(resource: Named, name: string, why = MODIFIED): ApiError {
  const message = `Operation cannot be fulfilled on ${qualified(resource)} "${name}": ${why}`;
  return new ApiError(409, 'Conflict', message, detailsOf(resource, name));
}

const MODIFIED = 'the object has been modified; please apply your changes to the latest version and try again';

/** Makes the error for an object that breaks rules; every fault is a cause. */
export function invalid(resource: Named, name: string, causes: readonly Cause[]): ApiError {
  const lines = causes.map((cause) => `${cause.field}: ${cause.message}`);
  const all = lines.length === 1 ? lines[0] : `[${lines.join(', ')}]`;
  const kind = resource.group === '' ? resource.kind : `${resource.kind}.${resource.group}`;
  return new ApiError(422, 'Invalid', `${kind} "${name}" is invalid: ${all}`, {
    ...detailsOf(resource, name),
    kind: resource.kind,
    causes: causes.map(({ reason, message, field }) => ({
      reason,
      message,
      ...(field === undefined ? {} : { field }),
    })),
  });
}

const POLICY_CODES: Readonly<Record<string, number>> = { Unauthorized: 401, Forbidden: 403, Invalid: 422 };

/** Makes the error for what an admission policy refuses, with the reason that it gives. */
export function refusedByPolicy(resource: Named, name: string, why: string, reason: string): ApiError {
  const message = `${qualified(resource)} "${name}" is forbidden: ${why}`;
  return new ApiError(POLICY_CODES[reason] ?? 422, reason, message, detailsOf(resource, name));
}

/** Makes the error for a request that cannot be understood. */
export function badRequest(message: string): ApiError {
  return new ApiError(400, 'BadRequest', message);
}

/** Makes the error for a state that is no longer kept. */
export function expired(message: string): ApiError {
  return new ApiError(410, 'Expired', message);
}

/** Makes the error for a verb that a resource does not have. */
export function methodNotAllowed(): ApiError {
  return new ApiError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {});
}

/** Makes the error for a body of an unknown form. */
export function unsupportedMediaType(accepted: readonly string[]): ApiError {
  const message = `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`;
  return new ApiError(415, 'UnsupportedMediaType', message);
}
