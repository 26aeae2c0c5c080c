import type { CloudError } from '../../cloud/cloud-error.ts';
import { limitText, MAX_TEXT } from '../../runtime/limit-text.ts';
import type { NodeProblem } from './node-view.ts';

/** Leaves place for the RequestId, and for the words with which the event recorder begins a combined text. */
const MAX_MESSAGE = MAX_TEXT.event - 150;

/** Returns the text of an event about a problem: the message, and the RequestId of the refused call. */
export function problemText({ message, requestId }: NodeProblem): string {
  if (requestId === undefined || requestId === '') return message;
  return `${limitText(message, MAX_MESSAGE)}, RequestId=${requestId}`;
}

/** Returns a text that differs when the problem is another one: the RequestId, another one at each try, is not in it. */
export function problemKey({ reason, message }: NodeProblem): string {
  return `${reason}: ${message}`;
}

/** Converts what the cloud refuses for good to a problem. */
export function problemOfRefusal({ action, code, text, requestId }: CloudError): NodeProblem {
  const message = `${action}: Code=${code}, Message=${text}`;
  return { reason: 'Forbidden', message, ...(requestId === undefined ? {} : { requestId }) };
}
