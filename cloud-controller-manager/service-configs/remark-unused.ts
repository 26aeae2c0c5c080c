import { messageText } from '../../runtime/limit-text.ts';
import { type Notice, remark } from '../balancers/notice.ts';

const MAX_MESSAGE = 900;

/** Reports settings of a TkeServiceConfig that have no effect; nothing where there are none. */
export function remarkUnusedConfig(kind: 'service' | 'ingress', names: readonly string[]): readonly Notice[] {
  if (names.length === 0) return [];
  const message = `the TkeServiceConfig has settings without an effect: ${names.join(', ')}; docs/reference/${kind}-annotations.md has what is served`;
  return [remark('ServiceConfigUnused', messageText(message, MAX_MESSAGE))];
}
