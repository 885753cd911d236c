// The place of the pool's map: segments and blocks by address. It needs an input that has segments.

import { useEffect, useState } from 'preact/hooks';

import { ask } from '../api/client';
import type { PoolMap } from '../api/types';
import { t } from '../i18n';
import { pool, session, timeWindow } from '../state/store';
import { Empty } from '../ui/empty';

export function PoolPane() {
  const here = pool.value?.id;
  const generation = session.value?.generation;
  const [map, setMap] = useState<PoolMap | null>(null);
  useEffect(() => {
    let current = true;
    if (here === undefined) return undefined;
    ask<PoolMap>('pool_map', { pool: here, t: Math.round(timeWindow.peek()[1]) }).then(
      (answer) => current && setMap(answer),
      () => current && setMap({ available: false }),
    );
    return () => {
      current = false;
    };
  }, [here, generation]);
  if (!map) return null;
  return <Empty title={t('pool.empty')} action={t('pool.empty.do')} />;
}
