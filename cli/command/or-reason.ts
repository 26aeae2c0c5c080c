import { unknown } from '../../inspection/node/known.ts';
import type { Known } from '../../inspection/node/node-facts.ts';
import { UserError } from '../../runtime/user-error.ts';

/** Returns what `read` reads of the cloud; the reason where the cloud does not answer. @throws any other error */
export async function orReason<T>(read: () => Promise<Known<T>>): Promise<Known<T>> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof UserError) || error.code !== 'NO_CLOUD') throw error;
    return unknown(error.message, error.next);
  }
}
