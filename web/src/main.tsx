import { render } from 'preact';

import 'uplot/dist/uPlot.min.css';
import './style/base.css';
import './style/timeline.css';
import './style/panes.css';
import { useTransport } from './api/client';
import { embeddedReport, ReportTransport } from './api/report';
import { App } from './app';
import { language, setLanguage, t } from './i18n';
import { follow, reportFacts } from './state/store';
import { followHover } from './timeline/hover';
import { followTimeline } from './timeline/data';
import { followKeyboard } from './ui/keyboard';
import { followTheme } from './ui/theme';

const report = embeddedReport();
if (report) {
  useTransport(new ReportTransport(report, () => t('app.reduced')));
  reportFacts.value = report.facts;
}
followTheme();
setLanguage(language.value);
follow();
followTimeline();
followHover();
followKeyboard();
const root = document.getElementById('app');
if (root) render(<App />, root);
