import type { ApiRequest } from '../api.ts';

/** Reports whether a request must leave no trace. */
export function isDryRun({ query }: Pick<ApiRequest, 'query'>): boolean {
  return query.getAll('dryRun').includes('All');
}
