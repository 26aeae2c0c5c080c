import { classifyError } from '../classify-error.ts';

/**
 * Refuses a list that is empty or too long, before it is sent: some APIs take an empty list for "all".
 * @throws CloudError BAD_REQUEST
 */
export function requireCount(action: string, what: string, count: number, most: number): void {
  if (count >= 1 && count <= most) return;
  const cure = count === 0 ? 'name at least one' : `make calls of at most ${most}`;
  throw classifyError({ code: 'BAD_REQUEST', action, text: `${count} ${what}; ${cure}. Nothing was sent` });
}
