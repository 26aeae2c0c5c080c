import type { ApiRequest } from '../api.ts';
import { badRequest } from '../api-error.ts';

/** Says what is to be said of fields that were pruned. @throws ApiError BadRequest when the client wants strictness */
export function warnOfUnknown(request: ApiRequest, unknown: readonly string[]): readonly string[] {
  const mode = request.query.get('fieldValidation') ?? 'Warn';
  if (unknown.length === 0 || mode === 'Ignore') return [];
  const lines = unknown.map((path) => `unknown field ${JSON.stringify(path)}`);
  if (mode !== 'Strict') return lines;
  throw badRequest(
    `${request.resource.kind} in version "${request.resource.version}" cannot be handled as a ${request.resource.kind}: strict decoding error: ${lines.join(', ')}`,
  );
}
